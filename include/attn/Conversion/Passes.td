#ifndef ATTN_CONVERSION_PASSES_TD
#define ATTN_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertLinalgToAttn : Pass<"convert-linalg-to-attn", "::mlir::ModuleOp"> {
  let summary = "Sums of linalg to attn.compute";
  let description = [{
    An op of linalg on tensors of f32, f16 or bf16 becomes an `attn.compute`: `linalg.matmul`, `linalg.batch_matmul`,
    `linalg.conv_1d_nwc_wcf`, pooling, element-wise ops, and any `linalg.generic` of one result whose indices are sums of loops
    times numbers from 0 up, and whose body holds arith and math ops on numbers. Projections of keys and values along the tokens
    can so be written in either dialect. Arithmetic is f32, whatever the tensors hold, and rounded once, as in `attn.compute`.

    What a sum starts from has to be a number: a `linalg.fill` of a constant, or a constant tensor of one number. Where the body does
    not read it, any tensor will do. What cannot be converted is an error at its place.

    Post-condition: no op of linalg is left, nor the fills and empty tensors that sums started from.
  }];
  let dependentDialects = ["::attn::AttnDialect"];
}

#endif // ATTN_CONVERSION_PASSES_TD
