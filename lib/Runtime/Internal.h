/* What the parts of the C runtime share. Plain C11; the same sources are compiled natively and to the bitcode that is
 * linked into every compiled object, so nothing here may depend on a target or on more of libc than malloc, memcpy and
 * snprintf. */
#ifndef ATTN_RUNTIME_INTERNAL_H
#define ATTN_RUNTIME_INTERNAL_H

#include "attn/Runtime/Abi.h"
#include "attn/Runtime/Attn.h"
#include "attn/Runtime/Plan.h"

#include <stddef.h>

static inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }
/* a >= 0, b > 0. */
static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
/* b > 0. */
static inline int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
static inline int64_t floor_mod(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }

#endif
