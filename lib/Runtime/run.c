/* Runs the steps of a function, in order, on all threads. */
#include "Internal.h"

#include <stdlib.h>

/* Below this many score x dim products the start of the threads would cost more than they save. */
static const int64_t WORK_FOR_THREADS = 1 << 19;
/* What a number that a step of code reads or writes counts in that. */
static const int64_t WORK_OF_ELEMENT = 16;
/* So many pieces of work can be shared out evenly. */
static const int64_t MANY_CHUNKS = 128;

static int64_t num_pairs(const AttnLaunch *launch) {
  return launch->problem.shape.batches * launch->problem.shape.heads;
}

/* Is the result of a task merged with what its rows join, by the thread that has it in its cache? */
static int joins_at_once(const AttnLaunch *launch) {
  return launch->tasks.parts == 1 && launch->problem.joined_out != NULL;
}

/* Floats of scratch that generated code of a kernel needs. */
static int64_t task_floats(const AttnProblem *problem) {
  const AttnKernel *kernel = problem->kernel;
  return kernel->scratch_base + kernel->scratch_per_dim * problem->head_dim +
         kernel->scratch_per_value_dim * problem->value_dim;
}

/* Where the part `part` of an item starts in the partials: items by (batch, head), each part a block of its rows. */
static float *partials_of(const AttnLaunch *launch, int64_t pair, const AttnItem *item, int64_t part) {
  int64_t rows = (pair * launch->problem.shape.num_queries + item->slot) * launch->tasks.parts + part * item->rows;
  return launch->partials + rows * (launch->problem.value_dim + 2);
}

AttnTask attn_make_task(const AttnLaunch *launch, int64_t pair, const AttnItem *item, int64_t part) {
  const AttnProblem *problem = &launch->problem;
  const AttnKernel *kernel = problem->kernel;
  AttnClassRows rows = attn_class_rows(kernel, &problem->shape, item->class_index);
  int64_t h = pair % problem->shape.heads, parts = launch->tasks.parts;
  return (AttnTask){.batch = pair / problem->shape.heads,
                    .head = h,
                    .key_head = h / (problem->shape.heads / problem->kv_heads),
                    .row = item->row,
                    .rows = item->rows,
                    .key_begin = parts == 1 ? 0 : attn_chunk_begin(kernel, rows.key_count, parts, part),
                    .key_end = parts == 1 ? rows.key_count : attn_chunk_begin(kernel, rows.key_count, parts, part + 1),
                    .query_token = rows.query_token,
                    .query_step = rows.query_step,
                    .key_token = rows.key_token,
                    .key_step = rows.key_step,
                    .query_offset = rows.query_offset,
                    .query_count = rows.query_count,
                    .key_count = rows.key_count,
                    .num_queries = problem->shape.num_queries,
                    .num_keys = problem->shape.num_keys,
                    .partial = parts > 1 || joins_at_once(launch) ? part + 1 : 0};
}

/* The plan's entry for the first tile of the task. */
static const int64_t *task_offsets(const AttnPlan *plan, const AttnTask *task, const AttnItem *item) {
  int64_t b = plan->batches > 1 ? task->batch : 0, h = plan->heads > 1 ? task->head : 0;
  return plan->offsets + ((b * plan->heads + h) * plan->classes + item->class_index) * plan->tiles + item->tile;
}

/* A part without keys, behind the first: nothing seen. */
static void clear_part(const AttnLaunch *launch, float *partials, int64_t rows) {
  int64_t dim = launch->problem.value_dim;
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t d = 0; d < dim + 2; d++)
      partials[row * (dim + 2) + d] = 0.0f;
    partials[row * (dim + 2) + dim] = -__builtin_inff();
  }
}

/* Query heads that share a key/value head. */
static int64_t heads_per_kv(const AttnLaunch *launch) {
  return max64(launch->problem.shape.heads / max64(launch->problem.kv_heads, 1), 1);
}

static void merge_parts(const AttnLaunch *launch, const AttnTask *task, float *partials) {
  attn_merge(&launch->problem, partials, launch->tasks.parts, task->batch, task->head,
             task->query_token + task->row * task->query_step, task->query_step, task->rows);
}

/* Tasks in order of (batch, kv head), item, part, query head of that kv head: tasks that read the same keys and values
 * follow each other. */
static void run_task(const AttnLaunch *launch, int64_t index, float *scratch) {
  int64_t parts = launch->tasks.parts, shared = heads_per_kv(launch), items = launch->tasks.num_items;
  int64_t head = index % shared, part = index / shared % parts, rest = index / shared / parts;
  int64_t pair = rest / items * shared + head;
  const AttnItem *item = &launch->tasks.items[rest % items];
  AttnTask task = attn_make_task(launch, pair, item, part);
  float *partials = joins_at_once(launch) ? scratch + task_floats(&launch->problem)
                    : parts > 1           ? partials_of(launch, pair, item, part)
                                          : NULL;
  if (part > 0 && task.key_begin == task.key_end) {
    clear_part(launch, partials, item->rows);
  } else {
    AttnTaskFn code = item->tail ? launch->code_tail : launch->code_task;
    code(launch->operands, &task, task_offsets(launch->plan, &task, item), launch->plan->runs, scratch, partials);
  }
  if (joins_at_once(launch))
    merge_parts(launch, &task, partials);
}

static void merge_item(const AttnLaunch *launch, int64_t index) {
  int64_t pair = index / launch->tasks.num_items;
  const AttnItem *item = &launch->tasks.items[index % launch->tasks.num_items];
  AttnTask task = attn_make_task(launch, pair, item, 0);
  merge_parts(launch, &task, partials_of(launch, pair, item, 0));
}

/* Called by every thread; the loops share the work out and wait for each other. */
static void run_kernel(const AttnLaunch *launch, float *scratch) {
  int64_t items = num_pairs(launch) * launch->tasks.num_items, parts = launch->tasks.parts;
  /* The query heads of a kv head go to one thread, one after the other, where there are tasks enough. */
  int64_t chunk = parts == 1 && items >= heads_per_kv(launch) * MANY_CHUNKS ? heads_per_kv(launch) : 1;
  (void)chunk; /* without OpenMP */
#ifdef _OPENMP
#pragma omp for schedule(dynamic, chunk)
#endif
  for (int64_t k = 0; k < items * parts; k++)
    run_task(launch, k, scratch);
  if (parts == 1)
    return;
#ifdef _OPENMP
#pragma omp for schedule(dynamic)
#endif
  for (int64_t k = 0; k < items; k++)
    merge_item(launch, k);
}

/* A step about to run: a kernel's launch, or code and its operands. */
typedef struct {
  AttnLaunch launch;
  AttnPlan late_plan; /* of a kernel that is planned when its tensors have been computed */
  AttnTables *late_tables;
  AttnStepFn code; /* null: the launch */
  AttnMemRef *operands[ATTN_MAX_OPERANDS];
  int64_t units;
} Step;

static int is_kernel(const Step *step) { return step->code == NULL; }

static void run_code(const Step *step) {
  int64_t chunk = max64(step->units / MANY_CHUNKS, 1), chunks = ceil_div(step->units, chunk);
#ifdef _OPENMP
#pragma omp for schedule(dynamic)
#endif
  for (int64_t k = 0; k < chunks; k++)
    step->code(step->operands, k * chunk, min64((k + 1) * chunk, step->units));
}

static size_t scratch_bytes(const Step *steps, int64_t count) {
  int64_t floats = 1;
  for (int64_t k = 0; k < count; k++) {
    if (!is_kernel(&steps[k]))
      continue;
    const AttnLaunch *launch = &steps[k].launch;
    const AttnProblem *problem = &launch->problem;
    int64_t rows = problem->kernel->group_tiles * problem->kernel->query_tile;
    floats = max64(floats, task_floats(problem) + (joins_at_once(launch) ? rows * (problem->value_dim + 2) : 0));
  }
  return (size_t)ceil_div(floats * (int64_t)sizeof(float), 64) * 64;
}

static int allocate_partials(AttnLaunch *launch) {
  const AttnProblem *problem = &launch->problem;
  int64_t rows = num_pairs(launch) * problem->shape.num_queries * launch->tasks.parts;
  if (launch->tasks.parts == 1)
    return ATTN_OK;
  launch->partials =
      aligned_alloc(64, (size_t)ceil_div(rows * (problem->value_dim + 2) * (int64_t)sizeof(float), 64) * 64);
  return launch->partials ? ATTN_OK : ATTN_OUT_OF_MEMORY;
}

/* All memory is had before the first task starts: running out of it leaves the outputs alone. */
static int run_all(const Step *steps, int64_t count, int threads) {
  size_t bytes = scratch_bytes(steps, count);
  int failed = 0;
  (void)threads; /* without OpenMP */
#ifdef _OPENMP
#pragma omp parallel if (threads)
#endif
  {
    float *scratch = aligned_alloc(64, bytes);
    if (!scratch) {
#ifdef _OPENMP
#pragma omp atomic write
#endif
      failed = 1;
    }
#ifdef _OPENMP
#pragma omp barrier
#endif
    for (int64_t k = 0; k < count && !failed; k++)
      if (is_kernel(&steps[k]))
        run_kernel(&steps[k].launch, scratch);
      else
        run_code(&steps[k]);
    free(scratch);
  }
  return failed ? ATTN_OUT_OF_MEMORY : ATTN_OK;
}

/* Numbers that a step of code reads and writes, as far as known: decides whether threads pay. */
static int64_t count_elements(const AttnCall *call, const AttnStep *step) {
  int64_t total = 0;
  for (int64_t k = 0; k < step->num_operands; k++) {
    const AttnMemRef *operand = &call->tensors[step->operands[k]];
    int64_t elements = 1;
    for (int64_t d = 0; d < call->program.tensors[step->operands[k]].rank; d++)
      elements *= operand->extents[d];
    total += elements;
  }
  return total;
}

static int is_late(const AttnCall *call, int64_t step) {
  int64_t kernel = call->program.steps[step].kernel;
  return kernel >= 0 && attn_is_planned_late(&call->program, &call->program.kernels[kernel]);
}

static int plan_late(AttnCall *call, int64_t kernel, Step *step) {
  AttnProblem problem = attn_make_problem(call, kernel);
  return attn_plan_problem(call, &problem, &step->late_plan, &step->late_tables);
}

/* Makes step `k` ready and adds its work. */
static int prepare(AttnCall *call, const attn_plan *plan, int64_t k, Step *step, int64_t *work) {
  const AttnStep *record = &call->program.steps[k];
  if (record->kernel < 0) {
    step->code = (AttnStepFn)call->program.code[record->code];
    step->units = attn_count_units(call, record);
    for (int64_t t = 0; t < record->num_operands; t++)
      step->operands[t] = &call->tensors[record->operands[t]];
    *work += WORK_OF_ELEMENT * count_elements(call, record);
    return ATTN_OK;
  }
  int late = is_late(call, k), status = late ? plan_late(call, record->kernel, step) : ATTN_OK;
  if (status != ATTN_OK)
    return status;
  step->launch = attn_make_launch(call, record->kernel, late ? &step->late_plan : &plan->plans[record->kernel],
                                  late ? step->late_tables : plan->tables[record->kernel]);
  status = attn_make_tasks(&step->launch.problem, step->launch.plan, &step->launch.tasks);
  *work += step->launch.tasks.work;
  return status == ATTN_OK ? allocate_partials(&step->launch) : status;
}

static void release(Step *step) {
  free(step->launch.tasks.items);
  free(step->launch.partials);
  attn_plan_release(&step->late_plan);
  attn_tables_free(step->late_tables);
}

/* From step `begin` up to the next one that is planned late, all of which can be made ready before the first of them
 * runs. Answers where the next one begins. */
static int64_t run_stretch(AttnCall *call, const attn_plan *plan, int64_t begin, Step *steps, int *status) {
  const AttnFunction *function = call->program.function;
  int64_t end = begin, work = 0;
  while (end < function->num_steps && *status == ATTN_OK && (end == begin || !is_late(call, end))) {
    *status = prepare(call, plan, end, &steps[end], &work);
    end++;
  }
  if (*status == ATTN_OK)
    *status = run_all(steps + begin, end - begin, function->threads && work >= WORK_FOR_THREADS);
  return end;
}

int attn_run(AttnCall *call, const attn_plan *plan) {
  int64_t count = call->program.function->num_steps;
  Step *steps = calloc((size_t)count + 1, sizeof(Step));
  int status = steps ? ATTN_OK : ATTN_OUT_OF_MEMORY;
  for (int64_t begin = 0; begin < count && status == ATTN_OK;)
    begin = run_stretch(call, plan, begin, steps, &status);
  for (int64_t k = 0; steps && k < count; k++)
    release(&steps[k]);
  free(steps);
  return status;
}
