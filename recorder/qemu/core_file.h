#ifndef CLEW_RECORDER_QEMU_CORE_FILE_H_
#define CLEW_RECORDER_QEMU_CORE_FILE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/units.h"
#include "recorder/qemu/guest_memory.h"

namespace clew::recorder {

// Registers of a thread for a core dump.
struct DumpedThread {
  Tid thread;
  std::array<uint64_t, 16> gpr = {};  // indexed by Gpr (common/inputs.h)
  uint64_t rip = 0;
  uint64_t rflags = 0x202;
  uint64_t fs_base = 0;
  uint64_t gs_base = 0;
};

// What a core dump says about its process.
struct DumpedProcess {
  int32_t process = 0;
  int32_t signal = 0;       // 0: the process did not die of one
  int32_t code = 0;         // its si_code; above 0 for a fault
  uint64_t fault_addr = 0;  // of SIGSEGV, SIGBUS
  std::string program;      // base name
  std::string arguments;    // as ps shows them
  std::vector<std::byte> auxv;
  std::vector<DumpedThread> threads;  // the failing one first
};

// Zero pages are left out of the file where at least this many bytes of them
// follow one another (their segment has p_memsz > p_filesz).
inline constexpr uint64_t kCoreZeroRunBytes = 256 * 1024;

// Writes an ELF core dump of the program, as the kernel would, that gdb opens:
// NT_PRSTATUS for each thread, NT_PRPSINFO, NT_SIGINFO, NT_AUXV, NT_FILE, and a
// PT_LOAD for every region. Source: elf.h; linux/elfcore.h; core(5).
//
// Mappings of a file of which code is mapped are left out, but for their first
// page, if they cannot be written and are as in that file: images/ has it. The
// kernel leaves out file-backed memory likewise (core(5), "Controlling which
// mappings are written").
[[nodiscard]] Status WriteCore(const std::string& path,
                               const DumpedProcess& dump,
                               std::span<const GuestRegion> regions,
                               const GuestMemory& memory);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_CORE_FILE_H_
