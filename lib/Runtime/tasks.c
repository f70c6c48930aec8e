/* What runs as one task: groups of query tiles, blocks of tail tiles, and the parts of split keys.
 *
 * All of it follows from extents and schedule alone, never from the number of threads, so results are the same bits
 * anywhere.
 */
#include "Internal.h"

#include <stdlib.h>

/* Query rows of a class that run as whole tiles; those behind them, if any, are the tail. */
static int64_t whole_rows(const AttnKernel *kernel, int64_t count) {
  int64_t rest = count % kernel->query_tile;
  return rest < kernel->tail_limit ? count - rest : count;
}

/* Tiles per task: fewer than the schedule's where there would be too few tasks. */
static int64_t group_size(const AttnProblem *problem, const AttnPlan *plan) {
  const AttnKernel *kernel = problem->kernel;
  if (kernel->split_tasks <= 0)
    return max64(kernel->group_tiles, 1);
  int64_t tiles = problem->shape.batches * problem->shape.heads * plan->classes * plan->tiles;
  return max64(min64(kernel->group_tiles, tiles / kernel->split_tasks), 1);
}

/* Writes the items of a class behind `count`, or only counts where `items` is null. */
static int64_t class_items(const AttnKernel *kernel, const AttnClassRows *rows, int64_t class_index, int64_t group,
                           AttnItem *items, int64_t count) {
  int64_t whole = whole_rows(kernel, rows->query_count);
  for (int64_t row = 0; row < rows->query_count;) {
    int tail = row >= whole;
    int64_t step = tail ? kernel->tail_tile : group * kernel->query_tile;
    int64_t end = min64(row + step, tail ? rows->query_count : whole);
    if (items)
      items[count] = (AttnItem){class_index, row / kernel->query_tile, row, end - row, 0, 0, tail};
    count++;
    row = end;
  }
  return count;
}

static int64_t all_items(const AttnProblem *problem, int64_t classes, int64_t group, AttnItem *items) {
  int64_t count = 0;
  for (int64_t c = 0; c < classes; c++) {
    AttnClassRows rows = attn_class_rows(problem->kernel, &problem->shape, c);
    count = class_items(problem->kernel, &rows, c, group, items, count);
  }
  return count;
}

/* Scores of query tile `tile` (of all tiles of all plan rows), per row. */
static int64_t tile_cost(const AttnPlan *plan, int64_t tile) {
  int64_t cost = 0;
  for (int64_t r = plan->offsets[tile]; r < plan->offsets[tile + 1]; r++)
    cost += plan->runs[r].end - plan->runs[r].begin;
  return cost;
}

/* Costs as the first plan row sees them: enough to order the items. */
static void estimate(const AttnKernel *kernel, const AttnPlan *plan, AttnTasks *tasks) {
  int64_t slot = 0;
  for (int64_t k = 0; k < tasks->num_items; k++) {
    AttnItem *item = &tasks->items[k];
    int64_t first = item->class_index * plan->tiles + item->tile;
    item->slot = slot;
    slot += item->rows;
    if (item->tail) {
      item->cost = tile_cost(plan, first) * item->rows;
      continue;
    }
    for (int64_t t = 0; t * kernel->query_tile < item->rows; t++)
      item->cost += tile_cost(plan, first + t) * min64(kernel->query_tile, item->rows - t * kernel->query_tile);
  }
}

/* Heavier items first, so that no long one starts when all other threads are about to end. Shell sort: no recursion, no
 * library. */
static void sort_by_cost(AttnItem *items, int64_t count) {
  int64_t gap = 1;
  while (gap < count / 3)
    gap = 3 * gap + 1;
  for (; gap > 0; gap /= 3)
    for (int64_t k = gap; k < count; k++) {
      AttnItem item = items[k];
      int64_t at = k;
      for (; at >= gap && items[at - gap].cost < item.cost; at -= gap)
        items[at] = items[at - gap];
      items[at] = item;
    }
}

/* Parts of the keys: as many as bring the tasks up to split_tasks, but none shorter than split_keys. */
static int64_t count_parts(const AttnProblem *problem, int64_t classes, int64_t tasks) {
  const AttnKernel *kernel = problem->kernel;
  int64_t keys = 0;
  if (kernel->split_keys <= 0 || tasks == 0 || tasks >= kernel->split_tasks)
    return 1;
  for (int64_t c = 0; c < classes; c++)
    keys = max64(keys, attn_class_rows(kernel, &problem->shape, c).key_count);
  return max64(min64(ceil_div(keys, kernel->split_keys), ceil_div(kernel->split_tasks, tasks)), 1);
}

/* First key row of a part; parts are whole key tiles, so the later ones of a short class may be empty. */
int64_t attn_chunk_begin(const AttnKernel *kernel, int64_t key_count, int64_t parts, int64_t part) {
  int64_t length = ceil_div(ceil_div(key_count, parts), kernel->key_tile) * kernel->key_tile;
  return min64(part * length, key_count);
}

/* Scores of all plan rows, taken for the (batch, head) pairs they serve, times the dims each of them touches. */
static int64_t count_work(const AttnProblem *problem, const AttnPlan *plan) {
  int64_t pairs = problem->shape.batches * problem->shape.heads, plan_pairs = plan->batches * plan->heads, scores = 0;
  for (int64_t r = 0; r < plan->num_runs; r++)
    scores += plan->runs[r].end - plan->runs[r].begin;
  return plan_pairs == 0
             ? 0
             : scores * problem->kernel->query_tile * (pairs / plan_pairs) * (problem->head_dim + problem->value_dim);
}

int attn_make_tasks(const AttnProblem *problem, const AttnPlan *plan, AttnTasks *tasks) {
  int64_t pairs = problem->shape.batches * problem->shape.heads / attn_pack(problem->kernel);
  int64_t group = group_size(problem, plan);
  *tasks = (AttnTasks){NULL, 0, 1, 0};
  if (pairs == 0)
    return ATTN_OK;
  tasks->num_items = all_items(problem, plan->classes, group, NULL);
  tasks->items = malloc(((size_t)tasks->num_items + 1) * sizeof(AttnItem));
  if (!tasks->items)
    return ATTN_OUT_OF_MEMORY;
  all_items(problem, plan->classes, group, tasks->items);
  estimate(problem->kernel, plan, tasks);
  sort_by_cost(tasks->items, tasks->num_items);
  tasks->parts = count_parts(problem, plan->classes, pairs * tasks->num_items);
  tasks->work = count_work(problem, plan);
  return ATTN_OK;
}
