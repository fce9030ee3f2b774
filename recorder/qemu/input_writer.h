#ifndef CLEW_RECORDER_QEMU_INPUT_WRITER_H_
#define CLEW_RECORDER_QEMU_INPUT_WRITER_H_

#include <cstdint>
#include <vector>

#include "common/inputs.h"
#include "common/linux/syscall_reads.h"
#include "recorder/qemu/guest_memory.h"
#include "recorder/qemu/raw_file.h"
#include "recorder/qemu/wire.h"

namespace clew::recorder {

// Appends the records of one thread to its part of inputs.pb: length-delimited
// Input messages (proto/bundle.proto). SyscallInput::writes and
// SignalInput::writes are ignored; the ranges passed beside take their place,
// and their bytes are fetched when the record is written.
// Not thread-safe.
class InputWriter {
 public:
  // `memory` must outlive the writer.
  InputWriter(Tid thread, RawFile file, const GuestMemory& memory);

  void Add(const SyscallInput& call, const std::vector<MemoryRange>& writes);
  void Add(const SignalInput& signal, const std::vector<MemoryRange>& writes);
  void Add(const InsnInput& insn);
  // With their own writes.
  void Add(const SyscallInput& call);
  void Add(const SignalInput& signal);
  // Of UnknownInput, the count and the cause.
  void Add(const UnknownInput& unknown);

  RawFile& file() { return file_; }
  // Bytes that should have been recorded and could not be read.
  uint64_t unreadable_bytes() const { return unreadable_bytes_; }

 private:
  void Append(const MemoryRange& range);
  void Append(const MemoryWrite& write);
  // `Write` is one of these.
  template <class Write>
  void AddCall(const SyscallInput& call, const std::vector<Write>& writes);
  template <class Write>
  void AddSignal(const SignalInput& signal, const std::vector<Write>& writes);
  template <class Write>
  void Emit(uint32_t kind_field, const Wire& before,
            const std::vector<Write>& writes, uint32_t writes_field,
            const Wire& after);

  Tid thread_;
  RawFile file_;
  const GuestMemory& memory_;
  uint64_t unreadable_bytes_ = 0;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_INPUT_WRITER_H_
