/* What the parts of the C runtime share.
 *
 * Plain C11; the same sources are compiled natively and to the bitcode that is linked into every compiled object and
 * then retargeted. So nothing here may depend on a target (no function with variable arguments: va_list differs), nor
 * on more of libc than malloc and its like, memcpy, memset and snprintf.
 */
#ifndef ATTN_RUNTIME_INTERNAL_H
#define ATTN_RUNTIME_INTERNAL_H

#include "attn/Runtime/Abi.h"
#include "attn/Runtime/Attn.h"
#include "attn/Runtime/Plan.h"
#include "attn/Runtime/Tables.h"

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdio.h>

/* A function of a compiled object, taken apart. */
typedef struct {
  const AttnFunction *function;
  const AttnTensor *tensors;
  const AttnSymbol *symbols;
  const AttnKernel *kernels;
  const AttnStep *steps;
  const char *strings;
  void *const *code;
} AttnProgram;

enum { ATTN_FOLDED = 3 }; /* tensors of a kernel */

/* One call of it: every tensor as a memref, every symbol with its extent (-1: not known yet) and the tensor that gave
 * it. */
typedef struct {
  AttnProgram program;
  AttnMemRef *tensors;
  AttnMemRef *folded; /* by kernel: query, output and log-sum-exp with heads as rows, see problem.c */
  int64_t *extents;
  int64_t *definers;
  char *internals; /* the memory of intermediates; null: none */
  void *stream;    /* of a GPU */
  int32_t ordinal; /* of the GPU that has the arguments */
} AttnCall;

/* One kernel of a call, ready to plan and run. */
typedef struct {
  const AttnKernel *kernel;
  AttnPlanShape shape;
  int64_t kv_heads, head_dim, value_dim;
  AttnMemRef *query, *key, *value, *out, *lse;
  AttnMemRef *joined_out, *joined_lse; /* null where nothing is joined */
  AttnMemRef *captured[ATTN_MAX_OPERANDS];
  int64_t out_code, out_bits; /* element type of the output */
} AttnProblem;

/* Rows that run as one task in every (batch, head): whole query tiles, or one block of a tail tile. */
typedef struct {
  int64_t class_index, tile; /* first query tile inside the class */
  int64_t row, rows;         /* rows inside the class */
  int64_t slot;              /* rows of all items before this one */
  int64_t cost;              /* scores to compute, as far as known */
  int32_t tail;              /* runs code_tail */
} AttnItem;

/* The tasks of a kernel: items x (batch, head) x parts of the keys. */
typedef struct {
  AttnItem *items;
  int64_t num_items;
  int64_t parts; /* 1: keys are not split */
  int64_t work;  /* scores of all tasks together times head and value dims: decides whether threads pay */
} AttnTasks;

/* A kernel about to run. */
typedef struct {
  AttnProblem problem;
  const AttnPlan *plan;
  AttnTasks tasks;
  AttnMemRef *operands[5 + ATTN_MAX_OPERANDS + ATTN_MAX_TABLES];
  AttnTaskFn code_task, code_tail;
  float *partials; /* null where keys are not split */
} AttnLaunch;

/* What NAME_plan makes: one plan and one set of tables per kernel, and the extents and the GPU that they hold for.
 * Those of a kernel that is planned late are empty. */
struct attn_plan {
  void (*release)(attn_plan *plan); /* of the object that made it; first, so that any object can call it */
  const AttnFunction *function;
  int64_t num_kernels;
  AttnPlan *plans;
  AttnTables **tables;
  int64_t *extents;               /* by symbol */
  int64_t ordinal;                /* of the GPU that has them */
  struct AttnDevicePlan **device; /* one per kernel; null without a GPU */
};

enum { ATTN_ERROR_SIZE = 512 };
char *attn_error_text(void);

/* Frees the memory that is kept from call to call for intermediates. */
void attn_forget_memory(void);

/* `ATTN_FAIL(call, status, format, ...)`: leaves the message "function: ..." and is the status. */
#define ATTN_FAIL(call, status, format, ...)                                                                           \
  (snprintf(attn_error_text(), ATTN_ERROR_SIZE, "%s: " format, attn_function_name(&(call)->program), __VA_ARGS__),     \
   (status))
/* The same about one tensor: "function: argument 'k': ...". */
#define ATTN_FAIL_ARGUMENT(call, tensor, status, format, ...)                                                          \
  ATTN_FAIL(call, status, "argument '%s': " format, attn_tensor_name(&(call)->program, tensor), __VA_ARGS__)

static inline const char *attn_function_name(const AttnProgram *p) { return p->strings + p->function->name; }
static inline const char *attn_tensor_name(const AttnProgram *p, int64_t t) { return p->strings + p->tensors[t].name; }
static inline const char *attn_symbol_name(const AttnProgram *p, int64_t s) { return p->strings + p->symbols[s].name; }

static inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }
/* a >= 0, b > 0. */
static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
/* b > 0. */
static inline int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
static inline int64_t floor_mod(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }

/* Query heads that run as one. */
static inline int64_t attn_pack(const AttnKernel *kernel) { return max64(kernel->pack, 1); }

static inline int on_device(const AttnCall *call) { return call->program.function->device == kDLCUDA; }

static inline int64_t element_bytes(const AttnTensor *tensor) { return (tensor->bits + 7) / 8; }

/* check.c: fills the call's memrefs from the first `count` arguments, or says what is wrong with them. */
int attn_check_arguments(AttnCall *call, const DLTensor *const *args, int64_t count);
int attn_check_heads(AttnCall *call);
int attn_check_captured(AttnCall *call);
int attn_check_steps(AttnCall *call);

/* overlap.c: no output may share memory with another argument or with itself. */
int attn_check_overlap(AttnCall *call, int64_t count);

/* problem.c: extents that follow from others, the tensors that are no arguments, and each kernel with its operands. */
int attn_apply_rules(AttnCall *call);
int attn_describe_rest(AttnCall *call, int64_t first);
int attn_allocate_internals(AttnCall *call);
void attn_free_internals(AttnCall *call);
AttnProblem attn_make_problem(AttnCall *call, int64_t kernel_index);
AttnLaunch attn_make_launch(AttnCall *call, int64_t kernel_index, const AttnPlan *plan, AttnTables *tables);
int64_t attn_count_units(const AttnCall *call, const AttnStep *step);

/* planned.c */
int attn_make_plan(AttnCall *call, attn_plan **result);
int attn_check_plan(AttnCall *call, const attn_plan *plan);
/* Does the mask of a kernel ask tensors that the function computes? On a CPU it is planned when they are there, and is
 * no part of an attn_plan. Kernels for a GPU have no tables of such tensors. */
int attn_is_planned_late(const AttnProgram *program, const AttnKernel *kernel);
int attn_plan_problem(AttnCall *call, AttnProblem *problem, AttnPlan *plan, AttnTables **tables);
/* Frees a plan that `call` alone has used. */
void attn_discard_plan(attn_plan *plan, const AttnCall *call);

/* tasks.c */
int attn_make_tasks(const AttnProblem *problem, const AttnPlan *plan, AttnTasks *tasks);
int64_t attn_chunk_begin(const AttnKernel *kernel, int64_t key_count, int64_t parts, int64_t part);

/* run.c: runs the steps of a function in order, on all its threads. Outputs are written only if the answer is ATTN_OK,
 * or where memory ran out for a kernel that is planned late. */
int attn_run(AttnCall *call, const attn_plan *plan);

AttnTask attn_make_task(const AttnLaunch *launch, int64_t pair, const AttnItem *item, int64_t part);

/* device.c: the same on a GPU. Objects for a CPU are built without it. */
#ifdef ATTN_DEVICE
int attn_device_plan(AttnCall *call, attn_plan *plan, int64_t index);
/* `call`: null where any call may have used it. */
void attn_device_plan_free(struct AttnDevicePlan *plan, int64_t ordinal, const AttnCall *call);
int attn_device_fetch(AttnCall *call, int64_t t, AttnMemRef *copy);
int attn_device_run(AttnCall *call, const attn_plan *plan);
int attn_device_internals(AttnCall *call);
void attn_device_free_internals(AttnCall *call);
int attn_device_check(AttnCall *call);
#else
static inline int attn_device_plan(AttnCall *call, attn_plan *plan, int64_t index) { return ATTN_NO_DEVICE; }
static inline void attn_device_plan_free(struct AttnDevicePlan *plan, int64_t ordinal, const AttnCall *call) {}
static inline int attn_device_fetch(AttnCall *call, int64_t t, AttnMemRef *copy) { return ATTN_NO_DEVICE; }
static inline int attn_device_run(AttnCall *call, const attn_plan *plan) { return ATTN_NO_DEVICE; }
static inline int attn_device_internals(AttnCall *call) { return ATTN_NO_DEVICE; }
static inline void attn_device_free_internals(AttnCall *call) {}
static inline int attn_device_check(AttnCall *call) { return ATTN_NO_DEVICE; }
#endif

/* merge.c: the parts of the rows of one item become output and lse, and are used up. `token` is that of its
 * first row. */
void attn_merge(const AttnProblem *problem, float *partials, int64_t parts, int64_t b, int64_t h, int64_t token,
                int64_t step, int64_t rows);

#endif
