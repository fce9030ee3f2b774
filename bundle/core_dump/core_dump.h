#ifndef CLEW_BUNDLE_CORE_DUMP_CORE_DUMP_H_
#define CLEW_BUNDLE_CORE_DUMP_CORE_DUMP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/file.h"
#include "common/inputs.h"
#include "common/result.h"
#include "common/units.h"

namespace clew::bundle {

// Registers of one thread (NT_PRSTATUS).
struct CoreThread {
  Tid thread;
  int32_t signal = 0;                 // pr_cursig
  std::array<uint64_t, 16> gpr = {};  // by Gpr
  TraceeAddr rip;
  uint64_t rflags = 0;
  uint64_t fs_base = 0;
  uint64_t gs_base = 0;
};

// Why the process was ended (NT_SIGINFO, siginfo_t).
struct CoreSignal {
  int32_t signal = 0;
  int32_t code = 0;  // si_code: above 0 if the kernel raised it
  TraceeAddr addr;   // si_addr; of meaning for faults that the kernel raised
};

// A stretch of memory (PT_LOAD).
struct CoreSegment {
  TraceeAddr addr;
  uint64_t size_bytes = 0;
  uint32_t prot = 0;                 // kProt...
  std::span<const std::byte> bytes;  // may be fewer: the rest was not dumped
};

// A stretch of a file that was mapped (NT_FILE). Nothing says that its bytes
// are in the dump.
struct CoreMapping {
  TraceeAddr addr;
  uint64_t size_bytes = 0;
  uint64_t file_offset = 0;
  std::string path;
};

// An x86-64 ELF core dump, plain or compressed with zstd. Every offset and size
// in it is checked: kCorruptInput. The first thread is the one that failed, as
// the kernel writes it. Immutable.
class CoreDump {
 public:
  // Most bytes that a compressed one may have.
  static constexpr uint64_t kSizeMax = uint64_t{1} << 32;
  // Most mapped files; Linux allows 65530 mappings (vm.max_map_count).
  static constexpr uint64_t kMappingsMax = 1 << 17;

  [[nodiscard]] static Result<CoreDump> Open(const std::string& path,
                                             uint64_t size_max = kSizeMax);
  // Over bytes that must outlive the object; `name` for messages.
  [[nodiscard]] static Result<CoreDump> Over(std::span<const std::byte> bytes,
                                             const std::string& name);

  const std::vector<CoreThread>& threads() const { return threads_; }
  // Absent if the dump has none, as those before Linux 3.7.
  const std::optional<CoreSignal>& signal() const { return signal_; }
  // As the dump lists them; empty if it has no list.
  const std::vector<CoreMapping>& mappings() const { return mappings_; }
  // Ordered by address; they do not overlap.
  const std::vector<CoreSegment>& segments() const { return segments_; }
  // The vDSO, where the auxiliary vector says that it was: [addr, its segment's
  // end), an ELF file if nobody wrote over it. Empty: the dump has it not.
  std::span<const std::byte> vdso() const;
  TraceeAddr vdso_addr() const { return vdso_addr_; }  // 0: not known
  // Where the program's own code begins (AT_ENTRY); 0: not known.
  TraceeAddr entry() const { return entry_; }
  // Whether code could run at `addr`; true where the dump has no segment.
  bool MayRunAt(TraceeAddr addr) const;
  // Copies memory to `out`; false if a byte of it is not in the dump.
  bool Read(TraceeAddr addr, std::span<std::byte> out) const;

 private:
  explicit CoreDump(std::string name) : name_(std::move(name)) {}
  Status Parse(std::span<const std::byte> bytes);
  Status ParseSegment(std::span<const std::byte> bytes, uint64_t header_offset);
  Status ParseNotes(std::span<const std::byte> bytes, uint64_t offset,
                    uint64_t size);
  Status ParsePrstatus(std::span<const std::byte> desc, uint64_t offset);
  Status ParseSiginfo(std::span<const std::byte> desc, uint64_t offset);
  Status ParseAuxv(std::span<const std::byte> desc, uint64_t offset);
  Status ParseFiles(std::span<const std::byte> desc, uint64_t offset);
  Status CheckOverlaps();
  const CoreSegment* SegmentAt(TraceeAddr addr) const;
  Result<std::span<const std::byte>> Part(std::span<const std::byte> bytes,
                                          uint64_t offset, uint64_t size,
                                          std::string_view what) const;

  std::string name_;
  std::optional<MappedFile> file_;
  std::vector<std::byte> unpacked_;
  std::vector<CoreThread> threads_;
  std::optional<CoreSignal> signal_;
  std::vector<CoreMapping> mappings_;
  std::vector<CoreSegment> segments_;
  TraceeAddr vdso_addr_;
  TraceeAddr entry_;
};

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_CORE_DUMP_CORE_DUMP_H_
