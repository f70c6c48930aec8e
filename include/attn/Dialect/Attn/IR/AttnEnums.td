//===- AttnEnums.td - Enumerations of the attn dialect -------*- tablegen -*-===//
#ifndef ATTN_DIALECT_ATTN_IR_ATTNENUMS_TD
#define ATTN_DIALECT_ATTN_IR_ATTNENUMS_TD

include "mlir/IR/EnumAttr.td"
include "attn/Dialect/Attn/IR/AttnDialect.td"

def Attn_Align : I32Enum<"Align", "where query positions start", [
    I32EnumCase<"TopLeft", 0, "top_left">,        // position of row r is r
    I32EnumCase<"BottomRight", 1, "bottom_right"> // position of row r is r + M - N
  ]> {
  let cppNamespace = "::attn";
}

def Attn_Normalizer : I32Enum<"Normalizer", "how the weights of a row come of its scores", [
    I32EnumCase<"Softmax", 0, "softmax">, // exp(score), divided by the sum over the keys
    I32EnumCase<"Sigmoid", 1, "sigmoid">, // 1 / (1 + exp(-score))
    I32EnumCase<"None", 2, "none">        // the score itself
  ]> {
  let cppNamespace = "::attn";
}

def Attn_ReindexKind : I32Enum<"ReindexKind", "how a mask falls into smaller dense problems", [
    I32EnumCase<"Dense", 0, "dense">,     // it does not
    I32EnumCase<"Residue", 1, "residue">, // class c holds the positions p with p mod size == c
    I32EnumCase<"Block", 2, "block">      // class c holds the positions p with p floordiv size == c
  ]> {
  let cppNamespace = "::attn";
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNENUMS_TD
