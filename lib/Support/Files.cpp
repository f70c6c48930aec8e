//===- Files.cpp - Where results are written --------------------------------===//
#include "attn/Support/Files.h"
#include "attn/Support/Errors.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

/// What is there already, and takes bytes without being replaced.
static bool isDeviceOrPipe(StringRef path) {
  return sys::fs::exists(path) && !sys::fs::is_regular_file(path) && !sys::fs::is_directory(path);
}

Error attn::checkWritable(StringRef path) {
  if (path == "-")
    return Error::success();
  if (sys::fs::is_directory(path))
    return makeError(path, ": cannot be written: it is a folder; name a file in it");
  StringRef folder = sys::path::parent_path(path);
  if (folder.empty())
    folder = ".";
  if (!sys::fs::is_directory(folder))
    return makeError(path, ": cannot be written: there is no folder '", folder, "'; make it first");
  StringRef asked = sys::fs::exists(path) ? path : folder;
  if (std::error_code error = sys::fs::access(asked, sys::fs::AccessMode::Write))
    return makeError(path, ": cannot be written: '", asked, "': ", error.message());
  return Error::success();
}

Error attn::writeFile(StringRef path, StringRef bytes) {
  if (!isDeviceOrPipe(path))
    return writeToOutput(path, [&](raw_ostream &os) {
      os << bytes;
      return Error::success();
    });
  std::error_code error;
  raw_fd_ostream os(path, error);
  if (!error) {
    os << bytes;
    os.close();
    error = os.error();
    os.clear_error();
  }
  return error ? makeError(path, ": cannot be written: ", error.message()) : Error::success();
}
