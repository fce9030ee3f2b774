#ifndef CLEW_BUNDLE_CORE_DUMP_DUMP_NOTES_H_
#define CLEW_BUNDLE_CORE_DUMP_DUMP_NOTES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bundle/core_dump/dump_layout.h"
#include "common/inputs.h"
#include "common/result.h"
#include "common/units.h"

namespace clew::bundle {

// Registers of one thread (NT_PRSTATUS).
struct DumpThread {
  Tid thread;
  int32_t signal = 0;                 // pr_cursig
  std::array<uint64_t, 16> gpr = {};  // by Gpr
  TraceeAddr rip;
  uint64_t rflags = 0;
  uint64_t fs_base = 0;
  uint64_t gs_base = 0;
};

// Why the process was ended (NT_SIGINFO, siginfo_t).
struct DumpSignal {
  int32_t signal = 0;
  int32_t code = 0;  // si_code: above 0 if the kernel raised it
  TraceeAddr addr;   // si_addr; of meaning for faults that the kernel raised
};

// A stretch of a file that was mapped (NT_FILE). Nothing says that its bytes
// are in the dump.
struct DumpMapping {
  TraceeAddr addr;
  uint64_t size_bytes = 0;
  uint64_t file_offset = 0;
  std::string path;
};

// Most mapped files of one dump; Linux allows 65530 mappings
// (vm.max_map_count).
inline constexpr uint64_t kDumpMappingsMax = 1 << 17;

// Each returns what a note of the type named above says, and fails with
// kCorruptInput if it is too short; `name` is for messages.
[[nodiscard]] Result<DumpThread> ReadDumpThread(const DumpNote& note,
                                                const std::string& name);
[[nodiscard]] Result<DumpSignal> ReadDumpSignal(const DumpNote& note,
                                                const std::string& name);

// Appends the mappings of an NT_FILE note to `mappings`. Fails with
// kCorruptInput where the list contradicts itself or ends early; those before
// are appended all the same. Source: linux fs/binfmt_elf.c, fill_files_note.
[[nodiscard]] Status ReadDumpMappings(const DumpNote& note,
                                      const std::string& name,
                                      std::vector<DumpMapping>& mappings);

// Returns the value of the first entry of `type` (AT_...) in an auxiliary
// vector; nullopt if there is none. Source: getauxval(3).
std::optional<uint64_t> AuxiliaryValue(std::span<const std::byte> auxv,
                                       uint64_t type);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_CORE_DUMP_DUMP_NOTES_H_
