#ifndef CLEW_BUNDLE_CORE_DUMP_CORE_DUMP_H_
#define CLEW_BUNDLE_CORE_DUMP_CORE_DUMP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bundle/core_dump/dump_layout.h"
#include "bundle/core_dump/dump_notes.h"
#include "common/os/file.h"
#include "common/result.h"
#include "common/units.h"

namespace clew::bundle {

// A stretch of memory (PT_LOAD).
struct DumpSegment {
  TraceeAddr addr;
  uint64_t size_bytes = 0;
  uint32_t prot = 0;                 // kProt...
  std::span<const std::byte> bytes;  // may be fewer: the rest was not dumped
};

// An x86-64 ELF core dump, plain or compressed with zstd. Every offset and size
// in it is checked: Open and Over fail with kCorruptInput if one is wrong. The
// first thread is the one that failed, as the kernel writes it. Immutable.
class CoreDump {
 public:
  // Most bytes that a compressed one may have.
  static constexpr uint64_t kSizeMax = uint64_t{1} << 32;

  [[nodiscard]] static Result<CoreDump> Open(const std::string& path,
                                             uint64_t size_max = kSizeMax);
  // Over bytes that must outlive the object; `name` for messages.
  [[nodiscard]] static Result<CoreDump> Over(std::span<const std::byte> bytes,
                                             const std::string& name);

  const std::vector<DumpThread>& threads() const { return threads_; }
  // Absent if the dump has none, as those before Linux 3.7.
  const std::optional<DumpSignal>& signal() const { return signal_; }
  // As the dump lists them; empty if it has no list.
  const std::vector<DumpMapping>& mappings() const { return mappings_; }
  // Ordered by address; they do not overlap.
  const std::vector<DumpSegment>& segments() const { return segments_; }
  // Returns the vDSO: the bytes from where the auxiliary vector says that it
  // was to the end of its segment. They are an ELF file unless the process
  // wrote over them. Empty if the dump does not have them.
  std::span<const std::byte> vdso() const;
  TraceeAddr vdso_addr() const { return vdso_addr_; }  // 0: not known
  // Where the program's own code begins (AT_ENTRY); 0: not known.
  TraceeAddr entry() const { return entry_; }
  // Returns whether code could run at `addr`; true if the dump has no segment
  // there.
  bool MayRunAt(TraceeAddr addr) const;
  // Copies memory to `out`. Returns false if a byte of it is not in the dump.
  bool Read(TraceeAddr addr, std::span<std::byte> out) const;

 private:
  explicit CoreDump(std::string name) : name_(std::move(name)) {}
  Status Parse(std::span<const std::byte> bytes);
  void AddSegment(std::span<const std::byte> bytes, const Elf64_Phdr& header);
  Status TakeNote(const DumpNote& note);
  Status TakeAuxv(const DumpNote& note);
  Status CheckOverlaps();
  const DumpSegment* SegmentAt(TraceeAddr addr) const;

  std::string name_;
  std::optional<MappedFile> file_;
  std::vector<std::byte> unpacked_;
  std::vector<DumpThread> threads_;
  std::optional<DumpSignal> signal_;
  std::vector<DumpMapping> mappings_;
  std::vector<DumpSegment> segments_;
  TraceeAddr vdso_addr_;
  TraceeAddr entry_;
};

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_CORE_DUMP_CORE_DUMP_H_
