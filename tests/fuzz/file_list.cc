// A file list as a stranger sends it: refused, or a list that keeps every rule
// of proto/collector_store.proto and survives the round trip.

#include "transfer/file_list.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/check.h"

using clew::transfer::FileEntry;
using clew::transfer::FileList;
using clew::transfer::FileListLimits;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto list = FileList::Parse(std::as_bytes(std::span(data, size)));
  if (!list) {
    CLEW_CHECK(list.error().message.find('\n') == std::string::npos,
               "a message of two lines: {:?}", list.error().message);
    return 0;
  }
  uint64_t size_bytes = 0;
  for (const FileEntry& file : list->files()) {
    CLEW_CHECK(clew::transfer::CheckPath(file.path).has_value(),
               "path {:?} was taken", file.path);
    uint64_t chunk_bytes = 0;
    for (size_t i = 0; i < file.chunks.size(); ++i) {
      chunk_bytes += file.chunk(i).size_bytes;
    }
    CLEW_CHECK(chunk_bytes == file.size_bytes, "{} bytes in chunks of {}",
               chunk_bytes, file.size_bytes);
    size_bytes += file.size_bytes;
  }
  CLEW_CHECK(size_bytes == list->size_bytes() &&
                 size_bytes <= FileListLimits{}.bundle_bytes_max,
             "a list of {} bytes was taken", size_bytes);
  const auto again = FileList::Parse(list->Encode());
  CLEW_CHECK(again.has_value() && *again == *list, "the round trip differs");
  return 0;
}
