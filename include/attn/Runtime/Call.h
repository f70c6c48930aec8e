/* The one door of the runtime: what every public function of a compiled object calls. */
#ifndef ATTN_RUNTIME_CALL_H
#define ATTN_RUNTIME_CALL_H

#include "attn/Runtime/Abi.h"
#include "attn/Runtime/Attn.h"

#include <dlpack/dlpack.h>

#ifdef __cplusplus
extern "C" {
#endif

enum AttnCallMode {
  ATTN_CALL = 0,      /* NAME: plan and run */
  ATTN_CALL_PLAN = 1, /* NAME_plan: `args` are the inputs alone, *plan is the result */
  ATTN_CALL_RUN = 2   /* NAME_run: *plan is what NAME_plan made */
};

/* Checks `args`, the arguments of `function` in order, and does what `mode` says. `strings` holds the names, `code` the
 * functions and getters that the table refers to. Answers an AttnStatus; outputs are untouched unless it is ATTN_OK. */
int attn_call(const AttnFunction *function, const char *strings, void *const *code, const DLTensor *const *args,
              int mode, attn_plan **plan);

/* The same on a stream of the device that the arguments live on. */
int attn_call_on(const AttnFunction *function, const char *strings, void *const *code, const DLTensor *const *args,
                 int mode, attn_plan **plan, void *stream);

#ifdef __cplusplus
}
#endif
#endif
