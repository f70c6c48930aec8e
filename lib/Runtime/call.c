/* attn_call: check, plan, run. */
#include "attn/Runtime/Call.h"
#include "Internal.h"

#include <stdlib.h>

static AttnProgram open_program(const AttnFunction *function, const char *strings, void *const *code) {
  AttnProgram program = {.function = function, .strings = strings, .code = code};
  program.tensors = (const AttnTensor *)(function + 1);
  program.symbols = (const AttnSymbol *)(program.tensors + function->num_tensors);
  program.kernels = (const AttnKernel *)(program.symbols + function->num_symbols);
  program.steps = (const AttnStep *)(program.kernels + function->num_kernels);
  return program;
}

/* One allocation for all arrays of the call. */
static int open_call(AttnCall *call) {
  size_t tensors = (size_t)call->program.function->num_tensors, symbols = (size_t)call->program.function->num_symbols;
  size_t folded = ATTN_FOLDED * (size_t)call->program.function->num_kernels;
  call->tensors = calloc(1, (tensors + folded) * sizeof(AttnMemRef) + 2 * symbols * sizeof(int64_t) + 1);
  if (!call->tensors)
    return ATTN_FAIL(call, ATTN_OUT_OF_MEMORY, "out of memory for the %s", "call");
  call->folded = call->tensors + tensors;
  call->extents = (int64_t *)(call->folded + folded);
  call->definers = call->extents + symbols;
  for (size_t s = 0; s < symbols; s++)
    call->extents[s] = -1;
  return ATTN_OK;
}

static int64_t count_inputs(const AttnProgram *program) {
  int64_t count = 0;
  while (count < program->function->num_arguments && program->tensors[count].role == ATTN_INPUT)
    count++;
  return count;
}

static int check(AttnCall *call, const DLTensor *const *args, int mode) {
  int64_t count = mode == ATTN_CALL_PLAN ? count_inputs(&call->program) : call->program.function->num_arguments;
  int status = attn_check_arguments(call, args, count);
  if (status == ATTN_OK)
    status = attn_apply_rules(call);
  if (status == ATTN_OK)
    status = attn_describe_rest(call, count);
  if (status == ATTN_OK)
    status = attn_check_heads(call);
  if (status == ATTN_OK)
    status = attn_check_captured(call);
  if (status == ATTN_OK)
    status = attn_check_steps(call);
  return status == ATTN_OK ? attn_check_overlap(call, count) : status;
}

/* Code for another CPU would end the process with an illegal instruction. */
static int check_cpu(const AttnCall *call) {
  int64_t granted = call->program.function->amx_granted;
  if (granted == 0 || ((int (*)(void))call->program.code[granted - 1])())
    return ATTN_OK;
  return ATTN_FAIL(call, ATTN_NO_AMX,
                   "compiled for AMX tiles, which this %s; compile it with --cpu=native here, or "
                   "with -amx-tile behind the CPU's name",
                   "machine does not have or does not grant");
}

static int run(AttnCall *call, const attn_plan *plan) {
  if (on_device(call))
    return attn_device_run(call, plan);
  int status = attn_run(call, plan);
  return status == ATTN_OK ? ATTN_OK : ATTN_FAIL(call, status, "out of memory for the %s", "tasks");
}

static int plan_or_run(AttnCall *call, int mode, attn_plan **plan) {
  attn_plan *made = NULL;
  if (mode == ATTN_CALL_PLAN)
    return attn_make_plan(call, plan);
  int status = mode == ATTN_CALL_RUN ? attn_check_plan(call, *plan) : attn_make_plan(call, &made);
  if (status == ATTN_OK)
    status = run(call, made ? made : *plan);
  attn_discard_plan(made, call);
  return status;
}

int attn_call(const AttnFunction *function, const char *strings, void *const *code, const DLTensor *const *args,
              int mode, attn_plan **plan) {
  return attn_call_on(function, strings, code, args, mode, plan, NULL);
}

int attn_call_on(const AttnFunction *function, const char *strings, void *const *code, const DLTensor *const *args,
                 int mode, attn_plan **plan, void *stream) {
  AttnCall call = {.program = open_program(function, strings, code), .stream = stream};
  if (mode == ATTN_CALL_PLAN && !plan)
    return ATTN_FAIL(&call, ATTN_NULL_ARGUMENT, "the place for the plan is %s", "null");
  int status = check_cpu(&call);
  if (status == ATTN_OK)
    status = open_call(&call);
  if (status != ATTN_OK)
    return status;
  status = check(&call, args, mode);
  if (status == ATTN_OK && on_device(&call))
    status = attn_device_check(&call);
  if (status == ATTN_OK && mode != ATTN_CALL_PLAN)
    status = on_device(&call) ? attn_device_internals(&call) : attn_allocate_internals(&call);
  if (status == ATTN_OK)
    status = plan_or_run(&call, mode, plan);
  if (on_device(&call))
    attn_device_free_internals(&call);
  else
    attn_free_internals(&call);
  free(call.tensors);
  return status;
}
