/* From a checked call to kernels that can be planned: intermediates, constants, extents, operands. */
#include "Internal.h"

#include <stdlib.h>

/* Row-major strides behind the extents. */
static int compact_strides(AttnMemRef *memref, int64_t rank, int64_t bytes, int64_t *size) {
  int64_t elements = 1;
  for (int64_t d = rank; d-- > 0;) {
    memref->extents[rank + d] = elements;
    if (__builtin_mul_overflow(elements, max64(memref->extents[d], 1), &elements))
      return ATTN_OUT_OF_MEMORY;
  }
  return __builtin_mul_overflow(elements, bytes, size) || *size > INT64_MAX - 64 ? ATTN_OUT_OF_MEMORY : ATTN_OK;
}

/* Extents and strides of a tensor that was not handed over; constants have their data as well. */
static int describe(AttnCall *call, int64_t t) {
  const AttnTensor *tensor = &call->program.tensors[t];
  AttnMemRef *memref = &call->tensors[t];
  int64_t bytes;
  for (int64_t d = 0; d < tensor->rank; d++)
    memref->extents[d] = max64(tensor->dims[d] >= 0 ? tensor->dims[d] : call->extents[-tensor->dims[d] - 1], 0);
  if (tensor->role == ATTN_CONSTANT)
    memref->base = memref->data = ((void *(*)(void))call->program.code[tensor->constant])();
  return compact_strides(memref, tensor->rank, element_bytes(tensor), &bytes);
}

/* All intermediates of a call lie in one block. Fresh memory of that size comes from the system page by page, which
 * costs as much as a light step; so the block of the last call is kept for the next, unless it is large. */
typedef struct {
  int64_t bytes; /* behind the header */
} Block;

enum { HEADER = 64 };
static const int64_t KEEP = INT64_C(1) << 28;
static Block *kept;

static char *take_block(int64_t bytes) {
  Block *block = __atomic_exchange_n(&kept, NULL, __ATOMIC_ACQ_REL);
  if (block && block->bytes >= bytes)
    return (char *)block + HEADER;
  free(block);
  block = bytes > INT64_MAX - HEADER ? NULL : aligned_alloc(64, (size_t)(bytes + HEADER));
  if (!block)
    return NULL;
  block->bytes = bytes;
  return (char *)block + HEADER;
}

static void give_block(char *memory) {
  Block *block = memory ? (Block *)(memory - HEADER) : NULL;
  if (block && block->bytes <= KEEP)
    block = __atomic_exchange_n(&kept, block, __ATOMIC_ACQ_REL);
  free(block);
}

/* When the program ends or the library is unloaded; a JIT, which runs no destructors, calls it. */
__attribute__((destructor)) void attn_forget_memory(void) { free(__atomic_exchange_n(&kept, NULL, __ATOMIC_ACQ_REL)); }

static int no_memory(AttnCall *call, int64_t t) {
  return ATTN_FAIL(call, ATTN_OUT_OF_MEMORY, "out of memory for the intermediate '%s'",
                   attn_tensor_name(&call->program, t));
}

static int64_t extent_of(const AttnCall *call, int64_t dim) { return dim >= 0 ? dim : call->extents[-dim - 1]; }

/* One extent from its source, where that is known already. */
static int apply_rule(AttnCall *call, int64_t s) {
  const AttnExtentRule *rule = &call->program.symbols[s].rule;
  int64_t source = rule->by ? extent_of(call, rule->source) : -1;
  if (source < 0)
    return ATTN_OK;
  int64_t extent = max64(floor_div(source * rule->times + rule->plus, rule->by), 0);
  if (call->extents[s] >= 0 && call->extents[s] != extent)
    return ATTN_FAIL_ARGUMENT(call, call->definers[s], ATTN_WRONG_EXTENT, "%s is %lld, expected %lld",
                              attn_symbol_name(&call->program, s), (long long)call->extents[s], (long long)extent);
  call->extents[s] = extent;
  return ATTN_OK;
}

/* A rule may come before that of its source: once more for each of them. */
int attn_apply_rules(AttnCall *call) {
  int64_t count = call->program.function->num_symbols;
  int status = ATTN_OK;
  for (int64_t round = 0; round < count; round++)
    for (int64_t s = 0; s < count && status == ATTN_OK; s++)
      status = apply_rule(call, s);
  return status;
}

int64_t attn_count_units(const AttnCall *call, const AttnStep *step) {
  int64_t units = 1;
  for (int64_t k = 0; k < step->num_units; k++) {
    const AttnUnits *by = &step->units[k];
    units *= ceil_div(call->tensors[step->operands[by->operand]].extents[by->dim], by->size);
  }
  return units;
}

/* From tensor `first` on: what is no argument, and the outputs where a plan is made without them. */
int attn_describe_rest(AttnCall *call, int64_t first) {
  for (int64_t t = first; t < call->program.function->num_tensors; t++)
    if (describe(call, t) != ATTN_OK)
      return no_memory(call, t);
  return ATTN_OK;
}

int attn_allocate_internals(AttnCall *call) {
  const AttnProgram *program = &call->program;
  int64_t total = 0;
  for (int round = 0; round < 2; round++) { /* sizes, then places */
    if (round && total && !(call->internals = take_block(total)))
      return ATTN_FAIL(call, ATTN_OUT_OF_MEMORY, "out of memory for the %s", "intermediates");
    int64_t place = 0;
    for (int64_t t = program->function->num_arguments; t < program->function->num_tensors; t++) {
      int64_t bytes;
      if (program->tensors[t].role != ATTN_TEMPORARY)
        continue;
      if (compact_strides(&call->tensors[t], program->tensors[t].rank, element_bytes(&program->tensors[t]), &bytes) !=
              ATTN_OK ||
          place > INT64_MAX / 2 - bytes)
        return no_memory(call, t);
      if (round)
        call->tensors[t].base = call->tensors[t].data = call->internals + place;
      place += max64(ceil_div(bytes, 64), 1) * 64;
    }
    total = place;
  }
  return ATTN_OK;
}

void attn_free_internals(AttnCall *call) { give_block(call->internals); }

/* [batches, heads, 1, ...] as [batches, kv_heads, heads of each, ...]. */
static AttnMemRef *fold_heads(AttnMemRef *to, const AttnMemRef *from, int64_t rank, int64_t kv_heads) {
  *to = *from;
  int64_t *sizes = to->extents, *strides = sizes + rank, shared = sizes[1] / kv_heads;
  sizes[1] = kv_heads;
  sizes[2] = shared;
  strides[2] = strides[1];
  strides[1] *= shared;
  return to;
}

/* One query in each of the heads that share keys: as queries of one head these are read once for all of them. Only
 * where nothing asks for a head or for the position of a query. */
static void fold(AttnCall *call, int64_t kernel_index, AttnProblem *problem) {
  const AttnKernel *kernel = problem->kernel;
  AttnMemRef *folded = call->folded + ATTN_FOLDED * kernel_index;
  int64_t heads = problem->query->extents[1], kv_heads = problem->key->extents[1];
  if (on_device(call) || kernel->has_mask || kernel->reindex != ATTN_DENSE || kernel->natural_partials ||
      kernel->num_captured || problem->joined_out || problem->query->extents[2] != 1 || kv_heads == 0 ||
      heads <= kv_heads)
    return;
  problem->query = fold_heads(&folded[0], problem->query, 4, kv_heads);
  problem->out = fold_heads(&folded[1], problem->out, 4, kv_heads);
  if (problem->lse)
    problem->lse = fold_heads(&folded[2], problem->lse, 3, kv_heads);
}

AttnProblem attn_make_problem(AttnCall *call, int64_t kernel_index) {
  const AttnKernel *kernel = &call->program.kernels[kernel_index];
  const AttnTensor *out = &call->program.tensors[kernel->out];
  AttnMemRef *tensors = call->tensors;
  AttnProblem problem = {.kernel = kernel,
                         .query = &tensors[kernel->query],
                         .key = &tensors[kernel->key],
                         .value = &tensors[kernel->value],
                         .out = &tensors[kernel->out],
                         .lse = kernel->lse >= 0 ? &tensors[kernel->lse] : NULL,
                         .joined_out = kernel->joined_out >= 0 ? &tensors[kernel->joined_out] : NULL,
                         .joined_lse = kernel->joined_lse >= 0 ? &tensors[kernel->joined_lse] : NULL,
                         .out_code = out->dtype_code,
                         .out_bits = out->bits};
  fold(call, kernel_index, &problem);
  /* Where scores are given, query and key are the value once more; so heads and queries are counted in the output. */
  problem.shape = (AttnPlanShape){problem.out->extents[0], problem.out->extents[1], problem.out->extents[2],
                                  problem.key->extents[2], call->program.function->threads};
  problem.kv_heads = problem.key->extents[1];
  problem.head_dim = problem.query->extents[3];
  problem.value_dim = problem.value->extents[3];
  for (int64_t k = 0; k < kernel->num_captured; k++)
    problem.captured[k] = &tensors[kernel->captured[k]];
  return problem;
}

AttnLaunch attn_make_launch(AttnCall *call, int64_t kernel_index, const AttnPlan *plan, AttnTables *tables) {
  AttnLaunch launch = {.problem = attn_make_problem(call, kernel_index), .plan = plan};
  const AttnProblem *problem = &launch.problem;
  const AttnKernel *kernel = problem->kernel;
  AttnMemRef **next = launch.operands;
  *next++ = problem->query;
  *next++ = problem->key;
  *next++ = problem->value;
  *next++ = problem->out;
  *next++ = problem->lse;
  for (int64_t k = 0; k < kernel->num_captured; k++)
    *next++ = problem->captured[k];
  for (int64_t t = 0; t < kernel->num_tables; t++)
    if (kernel->tables[t].kind == ATTN_MEMBERS)
      *next++ = attn_tables_bitmap(tables, t);
  launch.code_task = (AttnTaskFn)call->program.code[kernel->code_task];
  launch.code_tail = (AttnTaskFn)call->program.code[kernel->code_tail];
  return launch;
}
