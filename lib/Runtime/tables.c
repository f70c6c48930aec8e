/* Tables of captured integer tensors: the least and greatest value over any interval, and sets as bits. */
#include "Internal.h"

#include <stdlib.h>

enum { DTYPE_INT = 0, DTYPE_UINT = 1, DTYPE_BOOL = 6 };
/* Elements a leaf of the tree holds. Small, so that the short intervals of one query tile rarely end inside a leaf. */
enum { LEAF = 16 };
/* Columns a leaf of the tree over a row of bits holds: whole bytes, read many at a time. */
enum { BITS_LEAF = 512 };
enum { MAX_BOX_ROWS = 1024 };
/* Fewer are quicker read by one thread. */
enum { MANY_ELEMENTS = 1 << 18 };

typedef struct {
  int64_t lo, hi;
} Range;

/* What a run of bits holds; joined by or. */
enum { SOME_ONE = 1, SOME_ZERO = 2 };

/* A tensor with a tree over each of its rows along `dim`, or none where all rows are sorted: then the ends of an
 * interval are its range. A tree of n leaves is a heap: the root 1, the leaves n to 2n - 1. MEMBERS: `data` are the
 * bits, `strides` count bytes and `extents` bits. */
typedef struct {
  int64_t kind;
  const char *data;
  int64_t code, bits, rank, dim;
  int64_t extents[ATTN_MAX_RANK], strides[ATTN_MAX_RANK];
  int64_t length, rows, leaves; /* of a row; 0 rows: the tensor is empty */
  int sorted;
  Range *trees;
  uint8_t *bit_trees; /* MEMBERS */
  AttnMemRef bitmap;  /* MEMBERS */
} Table;

struct AttnTables {
  int64_t count;
  Table tables[];
};

static Range element_range(const Table *table) {
  if (table->code == DTYPE_BOOL)
    return (Range){0, 1};
  if (table->code == DTYPE_UINT && table->bits < 64)
    return (Range){0, (int64_t)((UINT64_C(1) << table->bits) - 1)};
  if (table->code == DTYPE_INT && table->bits < 64)
    return (Range){-(INT64_C(1) << (table->bits - 1)), (INT64_C(1) << (table->bits - 1)) - 1};
  return (Range){INT64_MIN, INT64_MAX};
}

/* Unsigned values of 64 bits are taken as signed ones, as generated code does. */
static int64_t read_element(const Table *table, int64_t offset) {
  const char *at = table->data + offset * ((table->bits + 7) / 8);
  if (table->code == DTYPE_BOOL)
    return *at != 0;
  switch (table->bits) {
  case 8:
    return table->code == DTYPE_UINT ? *(const uint8_t *)at : *(const int8_t *)at;
  case 16:
    return table->code == DTYPE_UINT ? *(const uint16_t *)at : *(const int16_t *)at;
  case 32:
    return table->code == DTYPE_UINT ? (int64_t)*(const uint32_t *)at : *(const int32_t *)at;
  default:
    return *(const int64_t *)at;
  }
}

static Range join(Range a, Range b) { return (Range){min64(a.lo, b.lo), max64(a.hi, b.hi)}; }

/* Elements [begin, end) of the row that starts at `offset`, one by one; at least one. */
static Range scan(const Table *table, int64_t offset, int64_t begin, int64_t end) {
  int64_t stride = table->rank ? table->strides[table->dim] : 0;
  Range range = {INT64_MAX, INT64_MIN};
  for (int64_t k = begin; k < end; k++) {
    int64_t value = read_element(table, offset + k * stride);
    range = join(range, (Range){value, value});
  }
  return range;
}

/* Bits [begin, end) of a row; at least one. */
static int scan_bits(const uint8_t *bits, int64_t begin, int64_t end) {
  int64_t first = begin / 8, last = (end - 1) / 8;
  unsigned low = 0xffu << begin % 8, high = 0xffu >> (7 - (end - 1) % 8);
  if (first == last)
    low &= high;
  unsigned ones = bits[first] & low, zeros = ~bits[first] & low;
  for (int64_t k = first + 1; k < last; k++) {
    ones |= bits[k];
    zeros |= (uint8_t)~bits[k];
  }
  if (first != last) {
    ones |= bits[last] & high;
    zeros |= ~bits[last] & high;
  }
  return (ones & 0xff ? SOME_ONE : 0) | (zeros & 0xff ? SOME_ZERO : 0);
}

/* The same from the tree where leaves are whole. */
static int query_bits(const Table *table, int64_t row, int64_t offset, int64_t begin, int64_t end) {
  const uint8_t *bits = (const uint8_t *)table->data + offset, *tree = table->bit_trees + row * 2 * table->leaves;
  int64_t first = ceil_div(begin, BITS_LEAF), last = end == table->length ? table->leaves : end / BITS_LEAF;
  if (first >= last)
    return scan_bits(bits, begin, end);
  int found = 0;
  if (begin < first * BITS_LEAF)
    found |= scan_bits(bits, begin, first * BITS_LEAF);
  if (end > last * BITS_LEAF)
    found |= scan_bits(bits, last * BITS_LEAF, end);
  for (int64_t l = first + table->leaves, r = last + table->leaves; l < r; l /= 2, r /= 2) {
    if (l & 1)
      found |= tree[l++];
    if (r & 1)
      found |= tree[--r];
  }
  return found;
}

/* Elements [begin, end) of row number `row`: whole leaves from the tree. */
static Range query_row(const Table *table, int64_t row, int64_t offset, int64_t begin, int64_t end) {
  if (table->kind == ATTN_MEMBERS) {
    int found = query_bits(table, row, offset, begin, end);
    return (Range){!(found & SOME_ZERO), found & SOME_ONE};
  }
  if (table->sorted) {
    int64_t stride = table->rank ? table->strides[table->dim] : 0;
    return (Range){read_element(table, offset + begin * stride), read_element(table, offset + (end - 1) * stride)};
  }
  int64_t first = ceil_div(begin, LEAF), last = end == table->length ? table->leaves : end / LEAF;
  if (first >= last)
    return scan(table, offset, begin, end);
  Range range = {INT64_MAX, INT64_MIN};
  if (begin < first * LEAF)
    range = join(range, scan(table, offset, begin, first * LEAF));
  if (end > last * LEAF)
    range = join(range, scan(table, offset, last * LEAF, end));
  const Range *tree = table->trees + row * 2 * table->leaves;
  for (int64_t l = first + table->leaves, r = last + table->leaves; l < r; l /= 2, r /= 2) {
    if (l & 1)
      range = join(range, tree[l++]);
    if (r & 1)
      range = join(range, tree[--r]);
  }
  return range;
}

/* Where row number `row` starts. */
static int64_t row_offset(const Table *table, int64_t row) {
  int64_t offset = 0;
  for (int64_t d = table->rank; d-- > 0;) {
    if (d == table->dim)
      continue;
    offset += row % table->extents[d] * table->strides[d];
    row /= table->extents[d];
  }
  return offset;
}

static void build_tree(const Table *table, int64_t row) {
  Range *tree = table->trees + row * 2 * table->leaves;
  int64_t offset = row_offset(table, row);
  for (int64_t leaf = 0; leaf < table->leaves; leaf++)
    tree[table->leaves + leaf] = scan(table, offset, leaf * LEAF, min64((leaf + 1) * LEAF, table->length));
  for (int64_t node = table->leaves; node-- > 1;)
    tree[node] = join(tree[2 * node], tree[2 * node + 1]);
}

static int is_sorted(const Table *table) {
  int64_t stride = table->rank ? table->strides[table->dim] : 0;
  for (int64_t row = 0; row < table->rows; row++) {
    int64_t offset = row_offset(table, row), before = INT64_MIN;
    for (int64_t k = 0; k < table->length; k++) {
      int64_t value = read_element(table, offset + k * stride);
      if (value < before)
        return 0;
      before = value;
    }
  }
  return 1;
}

static int build_trees(Table *table, int64_t threads) {
  table->length = table->rank ? table->extents[table->dim] : 1;
  table->rows = table->length > 0;
  for (int64_t d = 0; d < table->rank; d++)
    if (d != table->dim)
      table->rows *= table->extents[d];
  table->leaves = ceil_div(table->length, LEAF);
  table->sorted = is_sorted(table);
  if (table->rows == 0 || table->sorted)
    return ATTN_OK;
  table->trees = calloc((size_t)(table->rows * table->leaves), 2 * sizeof(Range));
  if (!table->trees)
    return ATTN_OUT_OF_MEMORY;
#ifdef _OPENMP
#pragma omp parallel for if (threads && table->rows > 1 && table->rows * table->length > MANY_ELEMENTS)
#endif
  for (int64_t row = 0; row < table->rows; row++)
    build_tree(table, row);
  return ATTN_OK;
}

static Table make_table(const AttnTable *wanted, const AttnTableSource *source) {
  Table table = {.kind = wanted->kind,
                 .data = (const char *)source->memref->data,
                 .code = source->dtype_code,
                 .bits = source->bits,
                 .rank = source->rank,
                 .dim = wanted->kind == ATTN_MEMBERS ? source->rank - 1 : wanted->dim};
  table.data += source->memref->offset * ((source->bits + 7) / 8);
  for (int64_t d = 0; d < source->rank; d++) {
    table.extents[d] = source->memref->extents[d];
    table.strides[d] = source->memref->extents[source->rank + d];
  }
  return table;
}

/* Turns a table over the set itself into one over its bits, `bytes` a row. */
static void point_at_bits(Table *table, char *bits, int64_t columns, int64_t bytes, int64_t rows) {
  int64_t stride = bytes;
  table->data = bits;
  table->code = DTYPE_BOOL;
  table->bits = 1;
  table->length = table->extents[table->dim] = columns;
  table->rows = rows;
  table->leaves = ceil_div(columns, BITS_LEAF);
  table->strides[table->dim] = 1;
  for (int64_t d = table->dim; d-- > 0;) {
    table->strides[d] = stride;
    stride *= table->extents[d];
  }
  table->bitmap.base = table->bitmap.data = bits;
  for (int64_t d = 0; d < table->rank; d++) {
    table->bitmap.extents[d] = d == table->dim ? bytes : table->extents[d];
    table->bitmap.extents[table->rank + d] = table->strides[d];
  }
}

static int build_bit_trees(Table *table) {
  table->bit_trees = calloc((size_t)max64(table->rows, 1), 2 * (size_t)table->leaves);
  if (!table->bit_trees)
    return ATTN_OUT_OF_MEMORY;
  for (int64_t row = 0; row < table->rows; row++) {
    uint8_t *tree = table->bit_trees + row * 2 * table->leaves;
    const uint8_t *bits = (const uint8_t *)table->data + row * table->bitmap.extents[table->dim];
    for (int64_t leaf = 0; leaf < table->leaves; leaf++)
      tree[table->leaves + leaf] =
          (uint8_t)scan_bits(bits, leaf * BITS_LEAF, min64((leaf + 1) * BITS_LEAF, table->length));
    for (int64_t node = table->leaves; node-- > 1;)
      tree[node] = tree[2 * node] | tree[2 * node + 1];
  }
  return ATTN_OK;
}

/* One column more than the largest member needs, in a byte of its own that is always 0: what a read beyond the end
 * finds, being clamped. */
static int build_members(Table *table, int64_t max_member) {
  int64_t largest = -1, rows = 1, entries = table->extents[table->dim];
  for (int64_t d = 0; d < table->dim; d++)
    rows *= table->extents[d];
  for (int64_t row = 0; row < rows && entries > 0; row++)
    largest = max64(largest, scan(table, row_offset(table, row), 0, entries).hi);
  if (largest > max_member)
    return ATTN_WRONG_EXTENT;
  int64_t columns = largest + 2, bytes = ceil_div(largest + 1, 8) + 1;
  char *bits = calloc((size_t)max64(rows, 1), (size_t)bytes);
  if (!bits)
    return ATTN_OUT_OF_MEMORY;
  for (int64_t row = 0; row < rows; row++)
    for (int64_t k = 0, offset = row_offset(table, row); k < entries; k++) {
      int64_t member = read_element(table, offset + k * table->strides[table->dim]);
      if (member >= 0)
        bits[row * bytes + member / 8] |= (char)(1 << member % 8);
    }
  point_at_bits(table, bits, columns, bytes, rows);
  return build_bit_trees(table);
}

int attn_tables_build(const AttnKernel *kernel, const AttnTableSource *captured, int64_t max_member, int64_t threads,
                      AttnTables **tables, int64_t *culprit) {
  *tables = calloc(1, sizeof(AttnTables) + (size_t)kernel->num_tables * sizeof(Table));
  int status = *tables ? ATTN_OK : ATTN_OUT_OF_MEMORY;
  for (int64_t t = 0; t < kernel->num_tables && status == ATTN_OK; t++) {
    Table *table = &(*tables)->tables[t];
    *culprit = kernel->tables[t].operand;
    *table = make_table(&kernel->tables[t], &captured[*culprit]);
    (*tables)->count = t + 1;
    status = table->kind == ATTN_MEMBERS ? build_members(table, max_member) : build_trees(table, threads);
  }
  if (status != ATTN_OK) {
    attn_tables_free(*tables);
    *tables = NULL;
  }
  return status;
}

void attn_tables_free(AttnTables *tables) {
  for (int64_t t = 0; tables && t < tables->count; t++) {
    free(tables->tables[t].trees);
    free(tables->tables[t].bit_trees);
    free(tables->tables[t].bitmap.base);
  }
  free(tables);
}

int64_t attn_tables_bytes(const AttnTables *tables) {
  int64_t bytes = 0;
  for (int64_t t = 0; tables && t < tables->count; t++) {
    const Table *table = &tables->tables[t];
    int64_t nodes = table->rows * 2 * table->leaves;
    if (table->kind == ATTN_MEMBERS)
      bytes += nodes + max64(table->rows, 1) * table->bitmap.extents[table->dim];
    else if (table->trees)
      bytes += nodes * (int64_t)sizeof(Range);
  }
  return bytes;
}

AttnMemRef *attn_tables_bitmap(AttnTables *tables, int64_t table) { return &tables->tables[table].bitmap; }

/* The rows of a box, counted like the digits of a number. */
typedef struct {
  int64_t lo[ATTN_MAX_RANK], hi[ATTN_MAX_RANK], at[ATTN_MAX_RANK];
} Box;

static int64_t clamp(int64_t value, int64_t extent) { return min64(max64(value, 0), extent - 1); }

/* Clamps the box to the tensor and answers its number of rows; 0 if it holds nothing, or more than are worth a walk. */
static int64_t make_box(const Table *table, const int64_t *lo, const int64_t *hi, Box *box) {
  int64_t rows = table->rows > 0;
  for (int64_t d = 0; d < table->rank && rows; d++) {
    box->at[d] = box->lo[d] = clamp(lo[d], table->extents[d]);
    box->hi[d] = clamp(hi[d], table->extents[d]);
    if (lo[d] > hi[d])
      return 0;
    if (d != table->dim)
      rows *= box->hi[d] - box->lo[d] + 1;
    if (rows > MAX_BOX_ROWS)
      return 0;
  }
  return rows;
}

static Range query_box_row(const Table *table, const Box *box) {
  if (table->rank == 0)
    return query_row(table, 0, 0, 0, 1);
  int64_t row = 0, offset = 0;
  for (int64_t d = 0; d < table->rank; d++)
    if (d != table->dim) {
      row = row * table->extents[d] + box->at[d];
      offset += box->at[d] * table->strides[d];
    }
  return query_row(table, row, offset, box->lo[table->dim], box->hi[table->dim] + 1);
}

static void next_row(const Table *table, Box *box) {
  for (int64_t d = table->rank; d-- > 0;) {
    if (d == table->dim)
      continue;
    if (box->at[d]++ < box->hi[d])
      return;
    box->at[d] = box->lo[d];
  }
}

/* The usual box lies in one row: neither counted nor walked. Answers 0 where it does not. */
static int query_single_row(const Table *table, const int64_t *lo, const int64_t *hi, Range *range) {
  int64_t row = 0, offset = 0, dim = table->dim;
  if (table->rows == 0 || table->rank == 0 || lo[dim] > hi[dim])
    return 0;
  for (int64_t d = 0; d < table->rank; d++) {
    if (d == dim)
      continue;
    if (lo[d] != hi[d])
      return 0;
    int64_t at = clamp(lo[d], table->extents[d]);
    row = row * table->extents[d] + at;
    offset += at * table->strides[d];
  }
  *range = query_row(table, row, offset, clamp(lo[dim], table->extents[dim]), clamp(hi[dim], table->extents[dim]) + 1);
  return 1;
}

static Range query_box(const Table *table, const int64_t *lo, const int64_t *hi) {
  Box box;
  int64_t rows = make_box(table, lo, hi, &box);
  Range range = rows ? (Range){INT64_MAX, INT64_MIN} : element_range(table);
  for (int64_t row = 0; row < rows; row++) {
    range = join(range, query_box_row(table, &box));
    next_row(table, &box);
  }
  return range;
}

void attn_range(const AttnTables *tables, int64_t index, const int64_t *lo, const int64_t *hi, int64_t *min_max) {
  const Table *table = &tables->tables[index];
  Range range;
  if (!query_single_row(table, lo, hi, &range))
    range = query_box(table, lo, hi);
  /* A negative value is no member, although a clamped read would find column 0. */
  if (table->kind == ATTN_MEMBERS && lo[table->dim] < 0) {
    range.lo = 0;
    if (hi[table->dim] < 0)
      range.hi = 0;
  }
  min_max[0] = range.lo;
  min_max[1] = range.hi;
}
