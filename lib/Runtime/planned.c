/* The plan object of a function: made from the inputs of a call, checked against those of the next. */
#include "Internal.h"

#include <stdlib.h>
#include <string.h>

/* What the planner hands to its callback. */
typedef struct {
  AttnClassify classify;
  AttnProblem *problem;
  const AttnTables *tables;
} Reading;

static int32_t classify(void *context, int64_t b, int64_t h, int64_t i_lo, int64_t i_hi, int64_t j_lo, int64_t j_hi) {
  const Reading *r = context;
  return r->classify(r->problem->captured, r->tables, r->problem->shape.num_queries, r->problem->shape.num_keys, b, h,
                     i_lo, i_hi, j_lo, j_hi);
}

/* A member that is no position of any problem of this size, nor below 2^24, is a mistake rather than worth its column.
 */
static int64_t member_limit(const AttnPlanShape *shape) {
  return max64(INT64_C(1) << 24, max64(shape->num_queries, shape->num_keys)) - 1;
}

static int build_tables(AttnCall *call, const AttnProblem *problem, AttnTables **tables) {
  const AttnKernel *kernel = problem->kernel;
  AttnTableSource sources[ATTN_MAX_OPERANDS];
  for (int64_t k = 0; k < kernel->num_captured; k++) {
    const AttnTensor *tensor = &call->program.tensors[kernel->captured[k]];
    sources[k] = (AttnTableSource){problem->captured[k], tensor->rank, tensor->dtype_code, tensor->bits};
  }
  int64_t culprit = 0, limit = member_limit(&problem->shape);
  int status = attn_tables_build(kernel, sources, limit, problem->shape.threads, tables, &culprit);
  if (status == ATTN_WRONG_EXTENT)
    return ATTN_FAIL_ARGUMENT(call, kernel->captured[culprit], status,
                              "holds a number above %lld; unused entries are negative", (long long)limit);
  return status == ATTN_OK ? ATTN_OK : ATTN_FAIL(call, status, "out of memory for the tables of the %s", "mask");
}

/* What the mask asks of captured tensors is answered on the host. */
static int fetch_captured(AttnCall *call, AttnProblem *problem, AttnMemRef *copies) {
  const AttnKernel *kernel = problem->kernel;
  for (int64_t k = 0; k < kernel->num_captured; k++)
    copies[k].base = NULL;
  for (int64_t t = 0; t < kernel->num_tables; t++) {
    int64_t k = kernel->tables[t].operand;
    if (copies[k].base || call->program.tensors[kernel->captured[k]].role == ATTN_CONSTANT)
      continue;
    int status = attn_device_fetch(call, kernel->captured[k], &copies[k]);
    if (status != ATTN_OK)
      return status;
    problem->captured[k] = &copies[k];
  }
  return ATTN_OK;
}

int attn_plan_problem(AttnCall *call, AttnProblem *problem, AttnPlan *plan, AttnTables **tables) {
  int status = build_tables(call, problem, tables);
  if (status != ATTN_OK)
    return status;
  Reading reading = {NULL, problem, *tables};
  if (problem->kernel->has_mask)
    reading.classify = (AttnClassify)call->program.code[problem->kernel->code_classify];
  status = attn_plan_build(problem->kernel, &problem->shape, classify, &reading, plan);
  return status == ATTN_OK ? ATTN_OK : ATTN_FAIL(call, status, "out of memory for the %s", "plan");
}

int attn_is_planned_late(const AttnProgram *program, const AttnKernel *kernel) {
  for (int64_t t = 0; t < kernel->num_tables; t++) {
    int64_t role = program->tensors[kernel->captured[kernel->tables[t].operand]].role;
    if (role != ATTN_INPUT && role != ATTN_CONSTANT)
      return 1;
  }
  return 0;
}

static int plan_kernel(AttnCall *call, int64_t index, attn_plan *plan) {
  AttnProblem problem = attn_make_problem(call, index);
  if (attn_is_planned_late(&call->program, problem.kernel))
    return ATTN_OK;
  if (!on_device(call))
    return attn_plan_problem(call, &problem, &plan->plans[index], &plan->tables[index]);
  AttnMemRef copies[ATTN_MAX_OPERANDS];
  int status = fetch_captured(call, &problem, copies);
  if (status == ATTN_OK)
    status = attn_plan_problem(call, &problem, &plan->plans[index], &plan->tables[index]);
  for (int64_t k = 0; k < problem.kernel->num_captured; k++)
    free(copies[k].base);
  return status == ATTN_OK ? attn_device_plan(call, plan, index) : status;
}

/* `call`: null where any call may have used it. */
static void release_for(attn_plan *plan, const AttnCall *call) {
  for (int64_t k = 0; k < plan->num_kernels; k++) {
    attn_device_plan_free(plan->device[k], plan->ordinal, call);
    attn_plan_release(&plan->plans[k]);
    attn_tables_free(plan->tables[k]);
  }
  free(plan);
}

static void release(attn_plan *plan) { release_for(plan, NULL); }

void attn_discard_plan(attn_plan *plan, const AttnCall *call) {
  if (plan)
    release_for(plan, call);
}

/* One allocation for the object and its arrays; all fields are of 8 bytes. */
static attn_plan *allocate(const AttnFunction *function) {
  size_t kernels = (size_t)function->num_kernels;
  size_t bytes = sizeof(attn_plan) + kernels * (sizeof(AttnPlan) + sizeof(AttnTables *) + sizeof(void *)) +
                 (size_t)function->num_symbols * sizeof(int64_t);
  attn_plan *plan = calloc(1, bytes);
  if (!plan)
    return NULL;
  plan->release = release;
  plan->function = function;
  plan->num_kernels = function->num_kernels;
  plan->plans = (AttnPlan *)(plan + 1);
  plan->tables = (AttnTables **)(plan->plans + kernels);
  plan->device = (struct AttnDevicePlan **)(plan->tables + kernels);
  plan->extents = (int64_t *)(plan->device + kernels);
  return plan;
}

int attn_make_plan(AttnCall *call, attn_plan **result) {
  const AttnFunction *function = call->program.function;
  attn_plan *plan = allocate(function);
  int status = plan ? ATTN_OK : ATTN_FAIL(call, ATTN_OUT_OF_MEMORY, "out of memory for the %s", "plan");
  if (plan) {
    memcpy(plan->extents, call->extents, (size_t)function->num_symbols * sizeof(int64_t));
    plan->ordinal = call->ordinal;
  }
  for (int64_t k = 0; k < function->num_kernels && status == ATTN_OK; k++)
    status = plan_kernel(call, k, plan);
  if (status == ATTN_OK)
    *result = plan;
  else
    attn_discard_plan(plan, call);
  return status;
}

/* An extent that only outputs have (-1 in the plan) is free. */
int attn_check_plan(AttnCall *call, const attn_plan *plan) {
  if (!plan)
    return ATTN_FAIL(call, ATTN_NULL_ARGUMENT, "the plan is %s", "null");
  if (plan->function != call->program.function)
    return ATTN_FAIL(call, ATTN_WRONG_PLAN, "the plan was made by %s function", "another");
  if (plan->ordinal != call->ordinal)
    return ATTN_FAIL(call, ATTN_WRONG_PLAN, "the plan was made on GPU %d, but '%s' is on GPU %d", (int)plan->ordinal,
                     attn_tensor_name(&call->program, 0), (int)call->ordinal);
  for (int64_t s = 0; s < call->program.function->num_symbols; s++)
    if (plan->extents[s] >= 0 && plan->extents[s] != call->extents[s])
      return ATTN_FAIL(call, ATTN_WRONG_PLAN, "the plan was made for %s = %lld, but '%s' has %lld",
                       attn_symbol_name(&call->program, s), (long long)plan->extents[s],
                       attn_tensor_name(&call->program, call->definers[s]), (long long)call->extents[s]);
  return ATTN_OK;
}
