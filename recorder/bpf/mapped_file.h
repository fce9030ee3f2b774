#ifndef CLEW_RECORDER_BPF_MAPPED_FILE_H_
#define CLEW_RECORDER_BPF_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/os/fd.h"
#include "recorder/bpf/input_event.h"

namespace clew::recorder::bpf {

// Reads, some time after an mmap, what the file had then. The bytes that a
// mapping begins with are not there to be read when the kernel's side sees the
// call: pages come when they are touched.
//
// Not thread-safe.
class MappedFileReader {
 public:
  // Of what `process`, which is there, maps: files are found as it finds them,
  // also when it has ended.
  explicit MappedFileReader(int32_t process);

  // Returns the bytes of the file that `call`, an mmap, maps, up to the end of
  // the mapping or of the file. nullopt if they are not known for sure: the
  // file is gone, is another by now, or may have been changed since; or it is
  // mapped shared, and others may write it.
  std::optional<std::vector<std::byte>> Read(const InputCall& call) const;

 private:
  Fd OpenFile(const InputCall& call, const MappedFileName& name) const;

  int32_t process_;
  Fd root_;
};

}  // namespace clew::recorder::bpf

#endif  // CLEW_RECORDER_BPF_MAPPED_FILE_H_
