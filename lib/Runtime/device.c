/* Kernels that a device runs: what a plan says is uploaded once, then a block of threads computes each query tile. */
#include "Internal.h"

#include "attn/Runtime/Device.h"

#include <stdlib.h>
#include <string.h>

/* What a plan of one kernel has in device memory, all in one allocation. */
struct AttnDevicePlan {
  char *memory;
  int64_t num_items, parts;
  int64_t blocks, offsets, runs;        /* bytes from `memory` */
  int64_t bitmaps[ATTN_MAX_TABLES];     /* of MEMBERS tables */
  int64_t constants[ATTN_MAX_OPERANDS]; /* of captured constants */
};

/* The host's image of that memory while it is filled. */
typedef struct {
  char *bytes; /* null: only the size is asked for */
  int64_t size;
} Staging;

static int failed(AttnCall *call, const char *text) { return ATTN_FAIL(call, ATTN_DEVICE_FAILED, "%s", text); }

static int64_t put(Staging *staging, const void *data, int64_t bytes) {
  int64_t at = staging->size;
  if (staging->bytes && bytes)
    memcpy(staging->bytes + at, data, (size_t)bytes);
  staging->size = (at + bytes + 255) / 256 * 256;
  return at;
}

static int64_t memref_bytes(const AttnMemRef *memref, int64_t rank, int64_t element) {
  int64_t elements = 1;
  for (int64_t d = 0; d < rank; d++)
    elements *= memref->extents[d];
  return elements * element;
}

static AttnBlock make_block(const AttnLaunch *launch, const AttnItem *item, int64_t part) {
  AttnBlock block = {.task = attn_make_task(launch, 0, item, part)};
  block.plan_tile = item->class_index * launch->plan->tiles + item->tile;
  block.partial_row = attn_pack(launch->problem.kernel) * (item->slot * launch->tasks.parts + part * item->rows);
  return block;
}

static void put_blocks(Staging *staging, const AttnLaunch *launch, struct AttnDevicePlan *plan) {
  int64_t count = launch->tasks.num_items * launch->tasks.parts;
  plan->blocks = put(staging, NULL, 0);
  for (int64_t k = 0; k < count; k++) {
    AttnBlock block = make_block(launch, &launch->tasks.items[k / launch->tasks.parts], k % launch->tasks.parts);
    if (staging->bytes)
      memcpy(staging->bytes + plan->blocks + k * (int64_t)sizeof(block), &block, sizeof(block));
  }
  staging->size = plan->blocks + (count * (int64_t)sizeof(AttnBlock) + 255) / 256 * 256;
}

static void put_all(Staging *staging, AttnCall *call, const AttnLaunch *launch, AttnTables *tables,
                    struct AttnDevicePlan *plan) {
  const AttnKernel *kernel = launch->problem.kernel;
  const AttnPlan *runs = launch->plan;
  put_blocks(staging, launch, plan);
  int64_t tiles = runs->batches * runs->heads * runs->classes * runs->tiles;
  plan->offsets = put(staging, runs->offsets, kernel->has_mask ? (tiles + 1) * (int64_t)sizeof(int64_t) : 0);
  plan->runs = put(staging, runs->runs, runs->num_runs * (int64_t)sizeof(AttnRun));
  for (int64_t t = 0; t < kernel->num_tables; t++)
    if (kernel->tables[t].kind == ATTN_MEMBERS) {
      const AttnMemRef *bitmap = attn_tables_bitmap(tables, t);
      int64_t rank = call->program.tensors[kernel->captured[kernel->tables[t].operand]].rank;
      plan->bitmaps[t] = put(staging, bitmap->data, memref_bytes(bitmap, rank, 1));
    }
  for (int64_t k = 0; k < kernel->num_captured; k++) {
    const AttnTensor *tensor = &call->program.tensors[kernel->captured[k]];
    if (tensor->role == ATTN_CONSTANT)
      plan->constants[k] = put(staging, launch->problem.captured[k]->data,
                               memref_bytes(launch->problem.captured[k], tensor->rank, element_bytes(tensor)));
  }
}

static int upload(AttnCall *call, const AttnLaunch *launch, AttnTables *tables, struct AttnDevicePlan *plan) {
  Staging staging = {NULL, 0};
  put_all(&staging, call, launch, tables, plan);
  staging.bytes = malloc((size_t)staging.size + 1);
  if (!staging.bytes)
    return ATTN_FAIL(call, ATTN_OUT_OF_MEMORY, "out of memory for the %s", "plan");
  staging.size = 0;
  put_all(&staging, call, launch, tables, plan);
  const char *text = attn_device_allocate(staging.size, (void **)&plan->memory, call->stream);
  if (!text)
    text = attn_device_write(plan->memory, staging.bytes, staging.size, call->stream);
  free(staging.bytes);
  return text ? failed(call, text) : ATTN_OK;
}

/* All kernels of an object are in one image. */
static const AttnImage *find_image(const AttnCall *call) {
  return ((const AttnImage *(*)(void))call->program.code[call->program.function->image])();
}

int attn_device_check(AttnCall *call) {
  const char *text = attn_device_start(find_image(call), call->ordinal);
  return text ? ATTN_FAIL(call, ATTN_NO_DEVICE, "%s", text) : ATTN_OK;
}

int attn_device_plan(AttnCall *call, attn_plan *plan, int64_t index) {
  struct AttnDevicePlan *result = calloc(1, sizeof(*result));
  if (!result)
    return ATTN_FAIL(call, ATTN_OUT_OF_MEMORY, "out of memory for the %s", "plan");
  plan->device[index] = result;
  AttnLaunch launch = {.problem = attn_make_problem(call, index), .plan = &plan->plans[index]};
  int status = attn_make_tasks(&launch.problem, launch.plan, &launch.tasks);
  if (status != ATTN_OK)
    return ATTN_FAIL(call, status, "out of memory for the %s", "tasks");
  result->num_items = launch.tasks.num_items;
  result->parts = launch.tasks.parts;
  status = upload(call, &launch, plan->tables[index], result);
  free(launch.tasks.items);
  return status;
}

void attn_device_plan_free(struct AttnDevicePlan *plan, int64_t ordinal, const AttnCall *call) {
  if (plan && plan->memory && call)
    attn_device_release(plan->memory, call->stream);
  else if (plan && plan->memory)
    attn_device_release_idle(plan->memory, (int32_t)ordinal);
  free(plan);
}

/* The host's copy of a strided tensor: all bytes from its first to its last element. */
int attn_device_fetch(AttnCall *call, int64_t t, AttnMemRef *copy) {
  const AttnTensor *tensor = &call->program.tensors[t];
  int64_t low = 0, high = 0, size = element_bytes(tensor);
  *copy = call->tensors[t];
  copy->base = NULL;
  for (int64_t d = 0; d < tensor->rank; d++) {
    if (copy->extents[d] == 0)
      return ATTN_OK;
    int64_t reach = (copy->extents[d] - 1) * copy->extents[tensor->rank + d] * size;
    *(reach < 0 ? &low : &high) += reach;
  }
  copy->base = malloc((size_t)(high - low + size));
  if (!copy->base)
    return ATTN_FAIL(call, ATTN_OUT_OF_MEMORY, "out of memory for a copy of '%s'", attn_tensor_name(&call->program, t));
  copy->data = (char *)copy->base - low;
  const char *text =
      attn_device_read(copy->base, (const char *)call->tensors[t].data + low, high - low + size, call->stream);
  return text ? failed(call, text) : ATTN_OK;
}

/* The parameters of a kernel, in the order of convert-attn-tile-to-gpu. */
typedef struct {
  int64_t values[(7 + ATTN_MAX_OPERANDS + ATTN_MAX_TABLES) * (1 + 2 * ATTN_MAX_RANK) + 9];
  int64_t count;
} Parameters;

static void add(Parameters *p, int64_t value) { p->values[p->count++] = value; }

static void add_tensor(Parameters *p, const void *data, const AttnMemRef *memref, int64_t rank) {
  add(p, (int64_t)(intptr_t)data);
  for (int64_t d = 0; d < 2 * rank; d++)
    add(p, memref->extents[d]);
}

static void add_tensors(Parameters *p, AttnCall *call, const attn_plan *plan, int64_t index) {
  const AttnKernel *kernel = &call->program.kernels[index];
  const struct AttnDevicePlan *device = plan->device[index];
  for (int64_t k = 0; k < 4; k++) {
    int64_t t = (const int64_t[]){kernel->query, kernel->key, kernel->value, kernel->out}[k];
    add_tensor(p, call->tensors[t].data, &call->tensors[t], 4);
  }
  if (kernel->lse >= 0)
    add_tensor(p, call->tensors[kernel->lse].data, &call->tensors[kernel->lse], 3);
  for (int64_t k = 0; k < kernel->num_captured; k++) {
    const AttnTensor *tensor = &call->program.tensors[kernel->captured[k]];
    const AttnMemRef *memref = &call->tensors[kernel->captured[k]];
    const void *data = tensor->role == ATTN_CONSTANT ? device->memory + device->constants[k] : memref->data;
    add_tensor(p, data, memref, tensor->rank);
  }
  for (int64_t t = 0; t < kernel->num_tables; t++)
    if (kernel->tables[t].kind == ATTN_MEMBERS) {
      int64_t rank = call->program.tensors[kernel->captured[kernel->tables[t].operand]].rank;
      add_tensor(p, device->memory + device->bitmaps[t], attn_tables_bitmap(plan->tables[index], t), rank);
    }
}

static void add_plan(Parameters *p, const AttnProblem *problem, const AttnPlan *plan,
                     const struct AttnDevicePlan *device, const void *partials) {
  add(p, (int64_t)(intptr_t)(device->memory + device->blocks));
  add(p, (int64_t)(intptr_t)(device->memory + device->offsets));
  add(p, (int64_t)(intptr_t)(device->memory + device->runs));
  add(p, (int64_t)(intptr_t)partials);
  add(p, device->num_items * device->parts);
  add(p, plan->batches > 1 ? plan->heads * plan->classes * plan->tiles : 0);
  add(p, plan->heads > 1 ? plan->classes * plan->tiles : 0);
  add(p, attn_pack(problem->kernel) * problem->shape.num_queries * device->parts);
  add(p, device->parts);
}

/* What only the merge kernel takes. */
static void add_joined(Parameters *p, const AttnProblem *problem) {
  if (!problem->joined_out)
    return;
  add_tensor(p, problem->joined_out->data, problem->joined_out, 4);
  add_tensor(p, problem->joined_lse->data, problem->joined_lse, 3);
}

static const char *start(AttnCall *call, int64_t name, int64_t blocks, int64_t threads, int64_t shared, Parameters *p) {
  void *places[sizeof(p->values) / sizeof(p->values[0])];
  for (int64_t k = 0; k < p->count; k++)
    places[k] = &p->values[k];
  AttnDeviceLaunch launch = {.image = find_image(call),
                             .kernel = call->program.strings + name,
                             .blocks = blocks,
                             .threads = threads,
                             .shared_bytes = shared,
                             .parameters = places,
                             .num_parameters = p->count};
  return attn_device_launch(&launch, call->stream);
}

static int run_kernel(AttnCall *call, const attn_plan *plan, int64_t index) {
  const AttnKernel *kernel = &call->program.kernels[index];
  const struct AttnDevicePlan *device = plan->device[index];
  AttnProblem problem = attn_make_problem(call, index);
  int64_t rows = problem.shape.batches * problem.shape.heads * problem.shape.num_queries;
  int64_t blocks = problem.shape.batches * problem.shape.heads / attn_pack(kernel) * device->num_items;
  int merges = device->parts > 1 || problem.joined_out; /* then kernels write partial results */
  void *partials = NULL;
  const char *text = NULL;
  Parameters p = {.count = 0};
  if (blocks == 0)
    return ATTN_OK;
  if (blocks * device->parts > INT32_MAX)
    return ATTN_FAIL(call, ATTN_WRONG_EXTENT, "%lld query tiles are more than a GPU grid has blocks",
                     (long long)(blocks * device->parts));
  if (merges)
    text = attn_device_allocate(rows * device->parts * attn_partial_floats(problem.value_dim) * 4, &partials,
                                call->stream);
  if (text)
    return failed(call, text);
  add_tensors(&p, call, plan, index);
  add_plan(&p, &problem, &plan->plans[index], device, partials);
  text = start(call, kernel->kernel_name, blocks * device->parts, kernel->warps * 32, kernel->shared_bytes, &p);
  add_joined(&p, &problem);
  if (!text && merges)
    text = start(call, kernel->merge_name, blocks, kernel->warps * 32, 0, &p);
  if (partials)
    attn_device_release(partials, call->stream);
  return text ? failed(call, text) : ATTN_OK;
}

/* A constant lies with the code of the host: a copy of it for the device. */
static const char *copy_constant(AttnCall *call, int64_t t, void **copy) {
  const AttnMemRef *memref = &call->tensors[t];
  int64_t bytes = memref_bytes(memref, call->program.tensors[t].rank, element_bytes(&call->program.tensors[t]));
  const char *text = attn_device_allocate(max64(bytes, 1), copy, call->stream);
  return text || bytes == 0 ? text : attn_device_write(*copy, memref->data, bytes, call->stream);
}

static const char *start_code(AttnCall *call, const AttnStep *step, void **copies) {
  Parameters p = {.count = 0};
  int64_t units = attn_count_units(call, step);
  if (units == 0)
    return NULL;
  for (int64_t k = 0; k < step->num_operands; k++) {
    int64_t t = step->operands[k];
    const void *data = call->tensors[t].data;
    if (call->program.tensors[t].role == ATTN_CONSTANT) {
      const char *text = copy_constant(call, t, &copies[k]);
      if (text)
        return text;
      data = copies[k];
    }
    add_tensor(&p, data, &call->tensors[t], call->program.tensors[t].rank);
  }
  add(&p, units);
  int64_t blocks = ceil_div(units, ATTN_STEP_THREADS / step->team);
  return start(call, step->kernel_name, min64(blocks, INT32_MAX), ATTN_STEP_THREADS, 0, &p);
}

static int run_code(AttnCall *call, const AttnStep *step) {
  void *copies[ATTN_MAX_OPERANDS] = {NULL};
  const char *text = start_code(call, step, copies);
  for (int64_t k = 0; k < step->num_operands; k++)
    if (copies[k])
      attn_device_release(copies[k], call->stream);
  return text ? failed(call, text) : ATTN_OK;
}

int attn_device_run(AttnCall *call, const attn_plan *plan) {
  int status = ATTN_OK;
  for (int64_t k = 0; k < call->program.function->num_steps && status == ATTN_OK; k++) {
    const AttnStep *step = &call->program.steps[k];
    status = step->kernel < 0 ? run_code(call, step) : run_kernel(call, plan, step->kernel);
  }
  return status;
}

int attn_device_internals(AttnCall *call) {
  const AttnFunction *function = call->program.function;
  for (int64_t t = function->num_arguments; t < function->num_tensors; t++) {
    if (call->program.tensors[t].role != ATTN_TEMPORARY)
      continue;
    AttnMemRef *memref = &call->tensors[t];
    int64_t bytes = memref_bytes(memref, call->program.tensors[t].rank, element_bytes(&call->program.tensors[t]));
    const char *text = attn_device_allocate(max64(bytes, 1), &memref->base, call->stream);
    if (text)
      return failed(call, text);
    memref->data = memref->base;
  }
  return ATTN_OK;
}

void attn_device_free_internals(AttnCall *call) {
  const AttnFunction *function = call->program.function;
  for (int64_t t = function->num_arguments; t < function->num_tensors; t++)
    if (call->program.tensors[t].role == ATTN_TEMPORARY && call->tensors[t].base)
      attn_device_release(call->tensors[t].base, call->stream);
}
