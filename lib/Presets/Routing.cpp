//===- Routing.cpp - Routing Transformer ------------------------------------===//
#include "Systems.h"

namespace attn::presets {

// A cluster sees itself only; clusters are groups of a head. The mask asks for tokens, as places in two lists are no
// order.
static constexpr char kRouting[] = R"(!c = tensor<?x${clusters}x${head_dim}x$dtype> // [heads, clusters, head_dim]
!s = tensor<?x?x?xf32>             // [batch, heads * clusters, tokens]
!r = tensor<?x?x?xi32>             // [batch, heads * clusters, window]: tokens, -1: none
!p = tensor<?x?x?xi32>             // [batch, heads * clusters, tokens]: places in such a list

$types
func.func @routing(%q: !t, ${key}%v: !t, %centroids: !c$arguments) -> !t {
  %qn = attn.normalize_rows %q eps(1.0e-5) centered : !t -> !t
  %qs = attn.row_scores %qn, %centroids : !t, !c -> !s
  %qr = attn.top_rows %qs count($window) : !s -> !r
  %qg = attn.gather_rows %qn[%qr] : !t, !r -> !t
$keys  %vg = attn.gather_rows %v[%$kr] : !t, !r -> !t
$null  %o = attn.attention %qg, %$kg, %vg ${joined}${scaled}mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %token = tensor.extract %$kr[%b, %h, %j] : !r
    %zero = arith.constant 0 : i32
    %there = arith.cmpi sge, %token, %zero : i32
$past    attn.yield %$keep : i1
  } : !t, !t, !t -> !t
  %places = attn.invert_rows %qr like %q, ${like}%v : !r, ${like_type}!t, !t -> !p
  %out = attn.scatter_mean %o[%places] groups($clusters) eps($eps) : !t, !p -> !t
  return %out : !t
}
)";

static constexpr char kKeys[] = R"(  %kn = attn.normalize_rows %k eps(1.0e-5) centered : !t -> !t
  %ks = attn.row_scores %kn, %centroids : !t, !c -> !s
  %kr = attn.top_rows %ks count($window) : !s -> !r
  %kg = attn.gather_rows %kn[%kr] : !t, !r -> !t
)";

/// Keys of each cluster that all its queries see; they are no tokens.
static std::string seeNull(const Settings &set, llvm::StringRef scaled) {
  return spread("kn0", "null_keys", "!n", "qg", "!t", "!b") + spread("vn0", "null_values", "!n", "qg", "!t", "!b") +
         ("  %n, %z = attn.attention %qg, %kn0, %vn0 " + scaled + ": !t, !b, !b -> !t, !z\n").str();
}

static constexpr char kPast[] = R"(    %own = tensor.extract %qr[%b, %h, %i] : !r
    %past = arith.cmpi sle, %token, %own : i32
    %keep = arith.andi %there, %past : i1
)";

Preset routing() {
  return {"routing",
          "Roy et al., Efficient Content-Based Sparse Attention with Routing Transformers (2020)",
          "learnable",
          "O(N clusters + clusters window^2)",
          /*decodes=*/true,
          {Setting::number("clusters", 64, 1, "clusters of each head, about sqrt(N)"),
           Setting::number("window", 64, 1,
                           "tokens that a cluster takes, about N / clusters; which ones depends on all "
                           "tokens, later ones too"),
           causalSetting(),
           Setting::word("keys", {"separate", "shared"}, "keys choose clusters by themselves; keys are the queries"),
           Setting::word("scale", {"head_dim", "one"}, "of scores: 1 / sqrt(head_dim), or 1 as in the authors' code"),
           Setting::number("null", 0, 0, "further keys of each cluster, learnt, so that no query of it is without"),
           Setting::word("mean", {"exact", "shrunk"},
                         "over a token's clusters: sum / count, or sum / (count + 0.01) as in the authors' code")},
          [](const Settings &set) -> llvm::Expected<std::string> {
            bool separate = set.is("keys", "separate"), causal = set.isOn("causal");
            std::string scaled = set.is("scale", "one") ? "scale(1.0) " : "";
            bool null = set.number("null") > 0;
            std::string types =
                null ? set.fill(
                           "!n = tensor<?x${null}x${head_dim}x$dtype>   // [heads * clusters, null keys, head_dim]\n"
                           "!b = tensor<?x?x${null}x${head_dim}x$dtype>\n!z = tensor<?x?x?xf32>\n")
                     : "";
            return set.fill(kRouting, {{"types", types},
                                       {"arguments", null ? ", %null_keys: !n, %null_values: !n" : ""},
                                       {"null", null ? seeNull(set, scaled) : ""},
                                       {"joined", null ? "join(%n, %z : !t, !z) " : ""},
                                       {"key", separate ? "%k: !t, " : ""},
                                       {"like", separate ? "%k, " : ""},
                                       {"like_type", separate ? "!t, " : ""},
                                       {"keys", separate ? set.fill(kKeys) : ""},
                                       {"kr", separate ? "kr" : "qr"},
                                       {"kg", separate ? "kg" : "qg"},
                                       {"scaled", scaled},
                                       {"past", causal ? kPast : ""},
                                       {"keep", causal ? "keep" : "there"},
                                       {"eps", set.is("mean", "exact") ? "0.0" : "1.0e-2"}});
          }};
}

} // namespace attn::presets
