/* The planner: for every query tile, ranges of keys are classified, long ones first, and PARTIAL ones are split down to
 * the granule. Where to cut first is guessed from the two tiles above, as borders of masks run along lines: a tile then
 * costs about one reading for each of its FULL and EMPTY ranges and one for each PARTIAL granule. */
#include "Internal.h"

#include <stdlib.h>
#include <string.h>

/* Tiles are planned in units of this many, one unit by one thread. A constant, so that plans never depend on the
 * threads. */
enum { UNIT_TILES = 128 };
/* A run that one tile alone lets expect to be PARTIAL is read granule by granule up to this many; two tiles are
 * believed. */
enum { SHORT_PARTIAL = 8 };

/* A run in the list of its tile. */
typedef struct {
  AttnRun run;
  int32_t next;
} Node;

/* The tiles [begin, end) of all tiles of all plan rows, and their runs: first as lists, in the end in order. */
typedef struct {
  int64_t begin, end;
  Node *nodes;
  int32_t used, capacity;
  int32_t first[UNIT_TILES], last[UNIT_TILES]; /* -1: no run yet */
  int64_t counts[UNIT_TILES];
  int failed;
} Unit;

/* A finished unit. */
typedef struct {
  AttnRun *runs;
  int64_t num_runs;
} UnitRuns;

typedef struct {
  const AttnKernel *kernel;
  const AttnPlanShape *shape;
  AttnPlanClassify classify;
  void *context;
} Planner;

/* One plan row, or the part of it that lies in a unit. */
typedef struct {
  const Planner *planner;
  Unit *unit;
  int64_t b, h;
  AttnClassRows rows;
  int64_t first_slot; /* slot of query tile 0 in the unit's arrays (may be negative) */
} Row;

static int grow(Unit *unit) {
  if (unit->capacity > INT32_MAX / 2)
    return 0;
  int32_t capacity = unit->capacity ? unit->capacity * 2 : 4 * UNIT_TILES;
  Node *nodes = realloc(unit->nodes, (size_t)capacity * sizeof(Node));
  if (!nodes)
    return 0;
  unit->nodes = nodes;
  unit->capacity = capacity;
  return 1;
}

/* Adds a run behind all runs of the tile, or makes the last one longer. */
static void append(Unit *unit, int64_t slot, AttnRun run) {
  int32_t last = unit->last[slot];
  if (last >= 0 && unit->nodes[last].run.kind == run.kind && unit->nodes[last].run.end == run.begin) {
    unit->nodes[last].run.end = run.end;
    return;
  }
  if (unit->used == unit->capacity && !grow(unit)) {
    unit->failed = 1;
    return;
  }
  int32_t node = unit->used++;
  unit->nodes[node] = (Node){run, -1};
  if (last >= 0)
    unit->nodes[last].next = node;
  else
    unit->first[slot] = node;
  unit->last[slot] = node;
  unit->counts[slot]++;
}

/* Query tile `t` by key granules [g0, g1). */
static int32_t classify(const Row *row, int64_t t, int64_t g0, int64_t g1) {
  const AttnKernel *kernel = row->planner->kernel;
  const AttnClassRows *rows = &row->rows;
  int64_t first_query = rows->query_token + rows->query_offset;
  int64_t i_lo = first_query + t * kernel->query_tile * rows->query_step;
  int64_t i_hi = first_query + (min64((t + 1) * kernel->query_tile, rows->query_count) - 1) * rows->query_step;
  int64_t j_lo = rows->key_token + g0 * kernel->key_granule * rows->key_step;
  int64_t j_hi = rows->key_token + (min64(g1 * kernel->key_granule, rows->key_count) - 1) * rows->key_step;
  /* Of heads that run as one: what some of them may need, and no mask where none of them has one. */
  int64_t pack = attn_pack(kernel);
  int32_t kind = ATTN_EMPTY;
  for (int64_t h = row->h * pack; h < (row->h + 1) * pack && kind != ATTN_PARTIAL; h++) {
    int32_t own = row->planner->classify(row->planner->context, row->b, h, i_lo, i_hi, j_lo, j_hi);
    kind = h == row->h * pack || own == kind ? own : ATTN_PARTIAL;
    if (!kernel->depends_head)
      break;
  }
  return kind;
}

/* The multiple of the largest power of two inside (lo, hi): neighbouring tiles then cut at the same keys. */
static int64_t split_point(int64_t lo, int64_t hi) {
  int64_t mid = hi - 1;
  while ((mid & (mid - 1)) > lo)
    mid &= mid - 1;
  return mid;
}

/* Visits the keys in order, so that runs can simply be appended. */
static void visit(const Row *row, int64_t t, int64_t g0, int64_t g1) {
  if (g0 >= g1 || row->unit->failed)
    return;
  int32_t kind = row->planner->classify ? classify(row, t, g0, g1) : ATTN_FULL;
  if (kind == ATTN_PARTIAL && g1 - g0 > 1) {
    int64_t middle = split_point(g0, g1);
    visit(row, t, g0, middle);
    visit(row, t, middle, g1);
  } else if (kind != ATTN_EMPTY) {
    int64_t granule = row->planner->kernel->key_granule;
    append(row->unit, row->first_slot + t,
           (AttnRun){(int32_t)(g0 * granule), (int32_t)min64(g1 * granule, row->rows.key_count), kind});
  }
}

/* Where the border that was at key `before` two tiles above and at key `last` one tile above should be now, in
 * granules. */
static int64_t extrapolate(int64_t before, int64_t last, int64_t granule, int64_t lo, int64_t hi) {
  int64_t guess = 2 * ceil_div(last, granule) - ceil_div(before, granule);
  return min64(max64(guess, lo), hi);
}

/* Visits all keys of a tile, cut where the tiles above let expect borders. A wrong guess costs readings, nothing else.
 */
static void plan_tile(const Row *row, int64_t t, int64_t tiles_above) {
  const Unit *unit = row->unit;
  int64_t slot = row->first_slot + t, granule = row->planner->kernel->key_granule, at = 0;
  int64_t end = ceil_div(row->rows.key_count, granule);
  int32_t last = tiles_above > 0 ? unit->first[slot - 1] : -1;
  int32_t before = tiles_above > 1 && unit->counts[slot - 1] == unit->counts[slot - 2] ? unit->first[slot - 2] : last;
  while (last >= 0) {
    AttnRun run = unit->nodes[last].run, old = unit->nodes[before].run;
    int64_t from = extrapolate(old.begin, run.begin, granule, at, end);
    int64_t to = extrapolate(old.end, run.end, granule, from, end);
    int granular = run.kind == ATTN_PARTIAL && (before != last || to - from <= SHORT_PARTIAL);
    visit(row, t, at, from);
    for (at = from; granular && at < to; at++)
      visit(row, t, at, at + 1);
    visit(row, t, at, to);
    at = to;
    last = unit->nodes[last].next;
    before = unit->nodes[before].next;
  }
  visit(row, t, at, end);
}

/* Plans query tiles [t0, t1) of plan row `index`; tiles beyond the end of a short class stay empty. */
static void plan_row(const Planner *planner, const AttnPlan *plan, Unit *unit, int64_t index, int64_t t0, int64_t t1) {
  int64_t c = index % plan->classes, bh = index / plan->classes;
  Row row = {planner,
             unit,
             bh / plan->heads,
             bh % plan->heads,
             attn_class_rows(planner->kernel, planner->shape, c),
             index * plan->tiles - unit->begin};
  t1 = min64(t1, ceil_div(row.rows.query_count, planner->kernel->query_tile));
  if (t0 >= t1 || row.rows.key_count == 0)
    return;
  for (int64_t t = t0; t < t1; t++)
    plan_tile(&row, t, t - t0);
}

/* Puts the runs of a unit in tile order. */
static UnitRuns flatten(const Unit *unit) {
  UnitRuns result = {malloc(((size_t)unit->used + 1) * sizeof(AttnRun)), unit->used};
  if (!result.runs)
    return result;
  AttnRun *out = result.runs;
  for (int64_t slot = 0; slot < unit->end - unit->begin; slot++)
    for (int32_t node = unit->first[slot]; node >= 0; node = unit->nodes[node].next)
      *out++ = unit->nodes[node].run;
  return result;
}

/* Plans the unit that begins at tile `begin` and leaves the run counts of its tiles in offsets[tile + 1]. */
static UnitRuns plan_unit(const Planner *planner, AttnPlan *plan, int64_t begin, int64_t end) {
  Unit unit;
  unit.begin = begin;
  unit.end = end;
  unit.nodes = NULL;
  unit.used = unit.capacity = unit.failed = 0;
  for (int64_t slot = 0; slot < UNIT_TILES; slot++) {
    unit.first[slot] = unit.last[slot] = -1;
    unit.counts[slot] = 0;
  }
  for (int64_t tile = begin; tile < end;) {
    int64_t row = tile / plan->tiles, t0 = tile % plan->tiles, t1 = min64(plan->tiles, t0 + end - tile);
    plan_row(planner, plan, &unit, row, t0, t1);
    tile += t1 - t0;
  }
  UnitRuns result = {NULL, 0};
  if (!unit.failed)
    result = flatten(&unit);
  free(unit.nodes);
  memcpy(plan->offsets + begin + 1, unit.counts, (size_t)(end - begin) * sizeof(int64_t));
  return result;
}

/* Turns the counts into offsets and the units into one list. */
static int join(AttnPlan *plan, const UnitRuns *units, int64_t num_units, int64_t num_tiles) {
  for (int64_t tile = 0; tile < num_tiles; tile++)
    plan->offsets[tile + 1] += plan->offsets[tile];
  plan->num_runs = plan->offsets[num_tiles];
  plan->runs = malloc(((size_t)plan->num_runs + 1) * sizeof(AttnRun));
  if (!plan->runs)
    return ATTN_OUT_OF_MEMORY;
  AttnRun *out = plan->runs;
  for (int64_t u = 0; u < num_units; u++) {
    if (!units[u].runs)
      return ATTN_OUT_OF_MEMORY;
    memcpy(out, units[u].runs, (size_t)units[u].num_runs * sizeof(AttnRun));
    out += units[u].num_runs;
  }
  return ATTN_OK;
}

/* Sets the extents of the plan and answers its number of tiles. */
static int64_t plan_extents(const AttnKernel *kernel, const AttnPlanShape *shape, AttnPlan *plan) {
  int masked = kernel->has_mask != 0;
  plan->batches = masked && kernel->depends_batch ? shape->batches : min64(shape->batches, 1);
  plan->heads = masked && kernel->depends_head ? shape->heads / attn_pack(kernel) : min64(shape->heads, 1);
  plan->classes = attn_class_count(kernel, shape);
  plan->tiles = 0;
  /* The first class of a residue has the most rows; of blocks, the first or a later one, as the first may be cut. */
  for (int64_t c = 0; c < min64(plan->classes, 2); c++)
    plan->tiles = max64(plan->tiles, ceil_div(attn_class_rows(kernel, shape, c).query_count, kernel->query_tile));
  return plan->batches * plan->heads * plan->classes * plan->tiles;
}

int attn_plan_build(const AttnKernel *kernel, const AttnPlanShape *shape, AttnPlanClassify classify, void *context,
                    AttnPlan *plan) {
  *plan = (AttnPlan){0};
  Planner planner = {kernel, shape, kernel->has_mask ? classify : NULL, context};
  int64_t num_tiles = plan_extents(kernel, shape, plan), num_units = ceil_div(num_tiles, UNIT_TILES);
  plan->offsets = calloc((size_t)num_tiles + 1, sizeof(int64_t));
  UnitRuns *units = calloc((size_t)num_units + 1, sizeof(UnitRuns));
  int status = plan->offsets && units ? ATTN_OK : ATTN_OUT_OF_MEMORY;
  if (status == ATTN_OK) {
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic) if (shape->threads && planner.classify && num_units > 1)
#endif
    for (int64_t u = 0; u < num_units; u++)
      units[u] = plan_unit(&planner, plan, u * UNIT_TILES, min64((u + 1) * UNIT_TILES, num_tiles));
    status = join(plan, units, num_units, num_tiles);
  }
  for (int64_t u = 0; units && u < num_units; u++)
    free(units[u].runs);
  free(units);
  if (status != ATTN_OK)
    attn_plan_release(plan);
  return status;
}

void attn_plan_release(AttnPlan *plan) {
  free(plan->offsets);
  free(plan->runs);
  *plan = (AttnPlan){0};
}
