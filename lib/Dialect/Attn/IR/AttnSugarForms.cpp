//===- AttnSugarForms.cpp - What can stand in the short form of a mask ---===//

#include "AttnSugar.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace attn;

static constexpr PredicateForm predicates[] = {
    {"causal", "ij", false, ""},
    {"window", "ij", false, "left?,right?"},
    {"dilated_window", "ij", false, "left?,right?,dilation"},
    {"stride", "ij", false, "size"},
    {"same_block", "ij", false, "size"},
    {"chunk_lookback", "ij", false, "size,before"},
    {"local_blocks", "ij", false, "size,before?,after?"},
    {"last_columns", "j", false, "block,count"},
    {"same_row", "ij", false, "width"},
    {"same_column", "ij", false, "width"},
    {"local_blocks_2d", "ij", false, "width,block[],flange[]"},
    {"neighborhood", "ij", false, "size", /*readsNumKeys=*/true},
    {"neighborhood_2d", "ij", false, "width,size[]", /*readsNumKeys=*/true},
    {"prefix", "j", false, "length"},
    {"key_length", "bj", true, ""},
    {"global", "ij", false, "count?,tokens[]?"},
    {"same_document", "bij", true, ""},
    {"heads", "h", false, "period,index"},
    {"block_mask", "bhij", true, "size"},
};

static constexpr PredicateForm sets[] = {
    {"column_in", "bhj", true, ""},
    {"row_in", "bhi", true, ""},
    {"in_table", "bhij", true, ""},
};

const ArrayRef<PredicateForm> attn::predicateForms(predicates);
const ArrayRef<PredicateForm> attn::setForms(sets);

SmallVector<Parameter> attn::parametersOf(const PredicateForm &form) {
  SmallVector<Parameter> parameters;
  for (StringRef name : llvm::split(form.parameters, ','))
    if (!name.empty()) {
      bool isOptional = name.consume_back("?");
      bool isList = name.consume_back("[]");
      parameters.push_back({name, isList, isOptional});
    }
  return parameters;
}

std::string attn::exampleOf(const PredicateForm &form, StringRef shown) {
  SmallVector<std::string> arguments;
  for (const Parameter &parameter : parametersOf(form)) {
    if (parameter.isOptional && parameter.name != shown)
      continue;
    StringRef number = arguments.empty() ? "8" : "2"; // counts inside a size
    StringRef value = parameter.isList ? "[2, 3]" : number;
    arguments.push_back((parameter.name + " = " + value).str());
  }
  if (form.captures)
    arguments.push_back("%tensor : type");
  return (form.name + "(" + llvm::join(arguments, ", ") + ")").str();
}

const PredicateForm *attn::findForm(ArrayRef<PredicateForm> table, StringRef name) {
  const PredicateForm *form = llvm::find_if(table, [&](const PredicateForm &f) { return f.name == name; });
  return form == table.end() ? nullptr : form;
}

std::optional<StringRef> attn::leadingPlaces(const PredicateForm &form, int64_t rank) {
  StringRef places = form.places.drop_back();
  bool isTable = places.ends_with("i");
  int64_t count = rank - 1;
  if (count < (isTable ? 1 : 0) || count > static_cast<int64_t>(places.size()))
    return std::nullopt;
  return isTable ? places.take_back(count) : places.take_front(count);
}
