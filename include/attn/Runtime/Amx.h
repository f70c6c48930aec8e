/* May this process use the tile registers of AMX? */
#ifndef ATTN_RUNTIME_AMX_H
#define ATTN_RUNTIME_AMX_H

#ifdef __cplusplus
extern "C" {
#endif

/* 1 where the CPU multiplies tiles of bf16 and the operating system grants the registers; asked once in a process. What
 * a compiled object calls before it touches anything. */
int attn_amx_granted(void);

#ifdef __cplusplus
}
#endif
#endif
