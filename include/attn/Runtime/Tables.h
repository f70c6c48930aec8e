/* Tables the runtime derives from captured integer tensors before planning; attn_range (Abi.h) reads them. */
#ifndef ATTN_RUNTIME_TABLES_H
#define ATTN_RUNTIME_TABLES_H

#include "attn/Runtime/Abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A captured tensor as the tables see it. */
typedef struct {
  const AttnMemRef *memref;
  int64_t rank;
  int64_t dtype_code, bits; /* as in AttnTensor */
} AttnTableSource;

/* Builds the tables that `kernel` asks for from its captured tensors, in their order. `max_member` bounds the entries
 * of the sets; `threads` is 1 where other threads may help. Answers ATTN_OK, ATTN_OUT_OF_MEMORY, or ATTN_WRONG_EXTENT
 * where a set holds more than max_member, and then *culprit is the index of the captured tensor. */
int attn_tables_build(const AttnKernel *kernel, const AttnTableSource *captured, int64_t max_member, int64_t threads,
                      AttnTables **tables, int64_t *culprit);
void attn_tables_free(AttnTables *tables);

/* Memory that the tables take. */
int64_t attn_tables_bytes(const AttnTables *tables);

/* The bits of table `table`, of kind ATTN_MEMBERS, as bytes [rows..., bytes of a row]; see AttnTableKind. */
AttnMemRef *attn_tables_bitmap(AttnTables *tables, int64_t table);

#ifdef __cplusplus
}
#endif
#endif
