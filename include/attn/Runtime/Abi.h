/* What a compiled attention object and the C runtime say to each other.
 *
 * Codegen writes one AttnFunction per public function of a spec, as a flat constant table of int64 (every field here is
 * an int64_t, so the table is the struct), and a list of code pointers. The runtime reads it: it checks the DLPack
 * arguments, plans the key ranges of every query tile with the kernel's interval reading, and runs the tasks on all
 * threads.
 *
 * Terms. A *query tile* is `query_tile` consecutive query rows of one (batch, query head, class). A *class* is one of
 * the smaller dense problems a strided, dilated or blocked mask falls into (1 class where there is no reindexing). A
 * *run* is a range of key rows of one class with one kind: FULL (no masking work) or PARTIAL. Rows count inside a
 * class: row r of class c is token `base(c) + r * step`. *Positions* are what masks speak of: query position = token +
 * offset, key position = token.
 *
 * The fields that are named in code, too, are listed in Fields.def.
 */
#ifndef ATTN_RUNTIME_ABI_H
#define ATTN_RUNTIME_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ATTN_ABI_VERSION = 3, ATTN_MAX_RANK = 8, ATTN_MAX_OPERANDS = 32, ATTN_MAX_TABLES = 16 };

enum AttnRunKind { ATTN_EMPTY = 0, ATTN_PARTIAL = 1, ATTN_FULL = 2 };

/* How a mask falls into smaller dense problems. RESIDUE: a class holds the positions p with one p mod size (token step
 * = size). BLOCK: a class holds the positions p with one p floordiv size (token step = 1). Classes are numbered in the
 * order of their first query row; positions without a query row make no class. */
enum AttnReindex { ATTN_DENSE = 0, ATTN_RESIDUE = 1, ATTN_BLOCK = 2 };

enum AttnAlign { ATTN_TOP_LEFT = 0, ATTN_BOTTOM_RIGHT = 1 }; /* query position = token, or token + keys - queries */

enum AttnDeviceType { ATTN_CPU = 1, ATTN_CUDA = 2 }; /* as in DLPack */

enum AttnTensorRole { ATTN_INPUT = 0, ATTN_OUTPUT = 1, ATTN_TEMPORARY = 2, ATTN_CONSTANT = 3 };

/* One tensor of a function: an argument, a result, or an intermediate that the runtime allocates. */
typedef struct {
  int64_t name;             /* byte offset into AttnFunction strings */
  int64_t role;             /* AttnTensorRole */
  int64_t dtype_code, bits; /* DLDataTypeCode and bits; lanes is 1; i1 is kDLBool (6) of 8 bits */
  int64_t inner_contiguous; /* 1: the last dimension must have stride 1 */
  int64_t rank;
  int64_t dims[ATTN_MAX_RANK]; /* >= 0: static extent; -(s + 1): symbol s */
  int64_t constant;            /* role CONSTANT: index into the code pointer list of a getter void *(void) */
} AttnTensor;

/* An extent that follows from another one, coded as in AttnTensor.dims: (source * times + plus) floordiv by, 0 where
 * that is negative. by = 0: there is no rule. */
typedef struct {
  int64_t source, times, plus, by;
} AttnExtentRule;

/* A named extent that several tensors share ("batch", "keys"...). Its first tensor in argument order defines it. */
typedef struct {
  int64_t name; /* byte offset into the strings */
  AttnExtentRule rule;
} AttnSymbol;

/* A table the runtime derives from a captured integer tensor before planning. RANGE: least and greatest value over any
 * interval of dimension `dim`, all other dimensions fixed. MEMBERS: bits [rows..., bytes of 8 bits], bit v mod 8 of
 * byte v div 8 being 1 where the value v occurs in the last dimension of that row; values below 0 are ignored. The last
 * byte of a row holds no member, so that a clamped read above finds 0; a value below 0 must be told apart by whoever
 * reads.
 */
enum AttnTableKind { ATTN_RANGE = 0, ATTN_MEMBERS = 1 };
typedef struct {
  int64_t kind;    /* AttnTableKind */
  int64_t operand; /* index into AttnKernel captured operands */
  int64_t dim;     /* RANGE: the varying dimension of the operand */
} AttnTable;

/* How many units a step has: the product of ceil(extent of a dimension of an operand / size). */
typedef struct {
  int64_t operand, dim, size;
} AttnUnits;

/* The extent of a dimension of an operand that has to be a multiple of another one. */
typedef struct {
  int64_t operand, dim, of_operand, of_dim;
} AttnMultiple;

/* The extent of a dimension of an operand that has to be at least another one times a number plus a number, unless the
 * other is 0. */
typedef struct {
  int64_t operand, dim, of_operand, of_dim, times, plus;
} AttnLeast;

enum { ATTN_MAX_MULTIPLES = 4, ATTN_MAX_LEAST = 8 };

/* What a function does, in order: a kernel, or code that works unit by unit. */
typedef struct {
  int64_t kernel;                                    /* index of its AttnKernel; -1: code */
  int64_t code;                                      /* index into the code pointer list; not on a GPU */
  int64_t kernel_name;                               /* on a GPU: byte offset into the strings */
  int64_t num_operands, operands[ATTN_MAX_OPERANDS]; /* tensor indices */
  int64_t num_units;
  AttnUnits units[ATTN_MAX_RANK];
  int64_t team; /* on a GPU: threads that work on a unit */
  int64_t num_multiples;
  AttnMultiple multiples[ATTN_MAX_MULTIPLES];
  int64_t num_least;
  AttnLeast least[ATTN_MAX_LEAST];
} AttnStep;

/* One attention op of a function. */
typedef struct {
  int64_t query, key, value, out, lse;               /* tensor indices; lse is -1 where it is not asked for */
  int64_t joined_out, joined_lse;                    /* over other keys, to take part in the softmax; -1: none */
  int64_t num_captured, captured[ATTN_MAX_OPERANDS]; /* tensor indices, in the order of the task's captured operands */
  int64_t num_tables;
  AttnTable tables[ATTN_MAX_TABLES];
#define ATTN_KERNEL_NUMBER(name) int64_t name;
#include "attn/Runtime/Fields.def"
  /* Floats of scratch a task needs: base + per_dim * head_dim + per_value_dim * value_dim. */
  int64_t scratch_base, scratch_per_dim, scratch_per_value_dim;
  int64_t code_classify, code_task, code_tail; /* indices into the code pointer list; tail may equal task */
  /* On a GPU these are offsets of names into the strings. */
  int64_t kernel_name, merge_name;
} AttnKernel;

typedef struct {
  int64_t abi_version;
  int64_t name; /* byte offset into the strings */
  int64_t num_tensors, num_symbols, num_kernels, num_steps;
  int64_t num_arguments; /* the first num_arguments tensors are the C arguments: inputs, then outputs */
  int64_t threads;       /* 1: tasks run on all OpenMP threads */
  int64_t device;        /* AttnDeviceType of the arguments */
  int64_t image;         /* for a GPU: index into the code pointer list of a getter const AttnImage *(void) */
  int64_t amx_granted;   /* 1 + index into the code pointer list of attn_amx_granted (Amx.h); 0: no tile instructions */
  /* followed by AttnTensor[num_tensors], AttnSymbol[num_symbols], AttnKernel[num_kernels], AttnStep[num_steps] */
} AttnFunction;

/* One run of key rows. */
typedef struct {
  int32_t begin, end; /* key rows of the class */
  int32_t kind;       /* AttnRunKind */
} AttnRun;

/* The plan of one kernel for given extents and captured data, in compressed rows: query tile t of plan row p has the
 * runs offsets[p * tiles + t] .. offsets[p * tiles + t + 1]. Plan rows are (batch, head, class), a dimension the mask
 * does not depend on counting 1. `tiles` is the largest number of query tiles of a class. */
typedef struct {
  int64_t batches, heads, classes, tiles;
  int64_t num_runs;
  int64_t *offsets;
  AttnRun *runs;
} AttnPlan;

/* The memref descriptor of MLIR for rank r: base, data, offset, sizes[r], strides[r]. */
typedef struct {
  void *base, *data;
  int64_t offset;
  int64_t extents[2 * ATTN_MAX_RANK]; /* sizes then strides, packed for the actual rank */
} AttnMemRef;

/* State that generated code gets for range queries; opaque to it. */
typedef struct AttnTables AttnTables;

/* The interval reading of a mask: may any / do all of the pairs with query position in [i_lo, i_hi] and key position in
 * [j_lo, j_hi] (both inclusive, both on the lattice of the class) attend? Answers an AttnRunKind; EMPTY and FULL are
 * proofs. `operands` are the captured tensors (data pointers of AttnMemRef). */
typedef int32_t (*AttnClassify)(AttnMemRef *const *operands, const AttnTables *tables, int64_t num_queries,
                                int64_t num_keys, int64_t b, int64_t h, int64_t i_lo, int64_t i_hi, int64_t j_lo,
                                int64_t j_hi);

/* Where and what a task computes. */
typedef struct {
#define ATTN_TASK_FIELD(Name, name) int64_t name;
#include "attn/Runtime/Fields.def"
} AttnTask;

/* What a block of GPU threads computes, in every (batch, query head): the grid is all blocks of the first pair,
 * then those of the next. The kernel puts in batch and heads itself. `plan_tile` is the query tile in a row of the
 * plan, `partial_row` the first row of its partial results among those of its pair. */
typedef struct {
  AttnTask task;
  int64_t plan_tile, partial_row;
} AttnBlock;

/* Runs one task. `operands`: query, key, value, out, lse (null if none), then captured and MEMBERS tables in table
 * order. `offsets` points at the entry of the task's first query tile, `runs` at the whole list. `scratch` is 64-byte
 * aligned. `partials` (split keys only): per row value_dim floats of sum(16^(x - m) v), then m (of powers of 16; with
 * natural_partials exp and natural units), then l = sum(16^(x - m)). */
typedef void (*AttnTaskFn)(AttnMemRef *const *operands, const AttnTask *task, const int64_t *offsets,
                           const AttnRun *runs, float *scratch, float *partials);

/* Runs the units [begin, end) of a step. */
typedef void (*AttnStepFn)(AttnMemRef *const *operands, int64_t begin, int64_t end);

/* Generated code asks for the least and greatest value that table `table` holds in the box [lo[d], hi[d]] (clamped to
 * the tensor, one entry per dimension; for a MEMBERS table the last one counts values). Dimension `dim` (MEMBERS: the
 * last) is answered from a tree or a sorted row, the others are walked; a box of more than 1024 rows answers the range
 * of the element type. An index outside the tensor reads the nearest element. Values are signed; bool and bitmaps are 0
 * or 1. For a MEMBERS table a value below 0 is no member. */
void attn_range(const AttnTables *tables, int64_t table, const int64_t *lo, const int64_t *hi, int64_t *min_max);

#ifdef __cplusplus
}
#endif
#endif
