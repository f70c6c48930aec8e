/* The classes of a reindexed kernel: which query and key rows belong together. */
#include "Internal.h"

static int64_t query_offset(const AttnKernel *kernel, const AttnPlanShape *shape) {
  return kernel->align == ATTN_BOTTOM_RIGHT ? shape->num_keys - shape->num_queries : 0;
}

int64_t attn_class_count(const AttnKernel *kernel, const AttnPlanShape *shape) {
  int64_t queries = shape->num_queries, size = kernel->reindex_size, offset = query_offset(kernel, shape);
  if (queries == 0)
    return 0;
  if (kernel->reindex == ATTN_RESIDUE)
    return min64(size, queries);
  if (kernel->reindex == ATTN_BLOCK)
    return floor_div(queries - 1 + offset, size) - floor_div(offset, size) + 1;
  return 1;
}

/* Positions p with p mod size == (index + offset) mod size: query tokens index, index + size, ... */
static void residue_rows(AttnClassRows *rows, const AttnPlanShape *shape, int64_t size, int64_t index) {
  rows->query_step = rows->key_step = size;
  rows->query_token = index;
  rows->query_count = ceil_div(shape->num_queries - index, size);
  rows->key_token = floor_mod(index + rows->query_offset, size);
  rows->key_count = rows->key_token < shape->num_keys ? ceil_div(shape->num_keys - rows->key_token, size) : 0;
}

/* Positions p with p floordiv size == block. Either end may stick out of the queries or of the keys. */
static void block_rows(AttnClassRows *rows, const AttnPlanShape *shape, int64_t size, int64_t index) {
  int64_t offset = rows->query_offset;
  int64_t begin = (floor_div(offset, size) + index) * size, end = begin + size;
  rows->query_step = rows->key_step = 1;
  rows->query_token = max64(begin - offset, 0);
  rows->query_count = min64(end - offset, shape->num_queries) - rows->query_token;
  rows->key_token = min64(max64(begin, 0), shape->num_keys);
  rows->key_count = max64(min64(end, shape->num_keys) - rows->key_token, 0);
}

AttnClassRows attn_class_rows(const AttnKernel *kernel, const AttnPlanShape *shape, int64_t index) {
  AttnClassRows rows = {0, 1, shape->num_queries, 0, 1, shape->num_keys, query_offset(kernel, shape)};
  if (kernel->reindex == ATTN_RESIDUE)
    residue_rows(&rows, shape, kernel->reindex_size, index);
  else if (kernel->reindex == ATTN_BLOCK)
    block_rows(&rows, shape, kernel->reindex_size, index);
  return rows;
}
