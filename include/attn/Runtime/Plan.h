/* The planner: which key rows each query tile has to look at, found from a mask's interval reading alone.
 *
 * For every query tile long ranges of keys are classified first, and only PARTIAL ones are split further, down to one
 * key granule. Borders are looked for where the tiles above had theirs, so the cost follows the number of runs kept,
 * not queries times keys.
 */
#ifndef ATTN_RUNTIME_PLAN_H
#define ATTN_RUNTIME_PLAN_H

#include "attn/Runtime/Abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The extents a plan is made for. */
typedef struct {
  int64_t batches, heads; /* heads: query heads */
  int64_t num_queries, num_keys;
  int64_t threads; /* 1: classify may be called from several threads at once */
} AttnPlanShape;

/* The query and key rows of one class: row r is token first + r * step. Classes are numbered in the order of their
 * first query row, from 0, and each has at least one query row; one whose keys lie outside the problem has no key rows.
 */
typedef struct {
  int64_t query_token, query_step, query_count;
  int64_t key_token, key_step, key_count;
  int64_t query_offset; /* query position = token + query_offset */
} AttnClassRows;

int64_t attn_class_count(const AttnKernel *kernel, const AttnPlanShape *shape);
AttnClassRows attn_class_rows(const AttnKernel *kernel, const AttnPlanShape *shape, int64_t index);

/* Answers an AttnRunKind for the pairs with query position in [i_lo, i_hi] and key position in [j_lo, j_hi], both
 * inclusive and both on the lattice of one class. */
typedef int32_t (*AttnPlanClassify)(void *context, int64_t b, int64_t h, int64_t i_lo, int64_t i_hi, int64_t j_lo,
                                    int64_t j_hi);

/* Builds the plan of `kernel` for `shape`; `classify` is not called, and may be null, where the kernel has no mask. The
 * runs of a tile are in key order, disjoint, and as long as possible; no run is EMPTY. The plan depends on neither the
 * number of threads nor the order of calls. Answers ATTN_OK, or ATTN_OUT_OF_MEMORY with an empty plan. */
int attn_plan_build(const AttnKernel *kernel, const AttnPlanShape *shape, AttnPlanClassify classify, void *context,
                    AttnPlan *plan);

/* Frees what a plan holds, and empties it. */
void attn_plan_release(AttnPlan *plan);

#ifdef __cplusplus
}
#endif
#endif
