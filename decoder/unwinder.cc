// The only file that includes libdw.
#include "decoder/unwinder.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>

#include "common/check.h"
#include "common/text/path_names.h"

namespace clew::decoder {
namespace {

using bundle::CoreDump;
using bundle::DumpThread;

// System V ABI, AMD64 supplement, "DWARF Register Number Mapping"; 16 is the
// return address.
constexpr std::array<Gpr, 16> kDwarfOrder = {kRax, kRdx, kRcx, kRbx, kRsi, kRdi,
                                             kRbp, kRsp, kR8,  kR9,  kR10, kR11,
                                             kR12, kR13, kR14, kR15};
constexpr pid_t kAnyPid = 1;

// libdwfl asks these for files. There are none but those that we report.
int FindNoElf(Dwfl_Module*, void**, const char*, Dwarf_Addr, char** file_name,
              Elf** elf) {
  *file_name = nullptr;
  *elf = nullptr;
  return -1;
}

int FindNoDebugInfo(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*,
                    const char*, GElf_Word, char** file_name) {
  *file_name = nullptr;
  return -1;
}

const Dwfl_Callbacks kCallbacks = {.find_elf = FindNoElf,
                                   .find_debuginfo = FindNoDebugInfo,
                                   .section_address = nullptr,
                                   .debuginfo_path = nullptr};

struct EndDwfl {
  void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
};

// The C library, or a program that may have it linked in.
bool HasCLibrary(const LoadedImage& image) {
  const std::string name = BaseName(image.path);
  return name.starts_with("libc.so") || name.starts_with("libc-") ||
         name.find(".so") == std::string::npos;
}

// A descriptor of a regular file, or -1.
int OpenRegular(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))) {
    close(fd);
    return -1;
  }
  return fd;
}

}  // namespace

constexpr size_t kSymbolsMax = 1 << 20;

// The row of .eh_frame for `addr`.
void FindRow(Dwfl_Module* module, uint64_t addr, CodePlace& place) {
  Dwarf_Addr bias = 0;
  Dwarf_CFI* table = dwfl_module_eh_cfi(module, &bias);
  Dwarf_Frame* row = nullptr;
  if (table == nullptr || dwarf_cfi_addrframe(table, addr - bias, &row) != 0) {
    return;
  }
  const std::unique_ptr<Dwarf_Frame, decltype(&std::free)> owned(row,
                                                                 std::free);
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  (void)dwarf_frame_info(row, &begin, &end, nullptr);
  place.row_offset = addr - bias - begin;
  place.row_bytes = end - begin;
}

// Where the module has the symbol `wanted`; 0: nowhere.
uint64_t AddressOf(Dwfl_Module* module, const char* wanted) {
  const int count = dwfl_module_getsymtab(module);
  for (int i = 0; i < count && static_cast<size_t>(i) < kSymbolsMax; ++i) {
    GElf_Sym symbol;
    GElf_Addr addr = 0;
    const char* name = dwfl_module_getsym_info(module, i, &symbol, &addr,
                                               nullptr, nullptr, nullptr);
    if (name != nullptr && std::strcmp(name, wanted) == 0 &&
        symbol.st_shndx != SHN_UNDEF) {
      return addr;
    }
  }
  return 0;
}

struct Unwinder::Session {
  const LoadedImages& images;
  const CoreDump* core;
  std::unique_ptr<Dwfl, EndDwfl> dwfl = {};
  bool attached = false;
  std::set<const Dwfl_Module*> without_lines = {};

  // Of the stack that is being unwound.
  DumpThread thread = {};
  size_t frames_max = 0;
  Clock::time_point deadline = {};
  Stack* stack = nullptr;

  static Session& Of(void* arg) { return *static_cast<Session*>(arg); }
  bool Late() {
    stack->late = stack->late || Clock::now() >= deadline;
    return stack->late;
  }

  void Report(const LoadedImage& image) {
    const int fd = OpenRegular(image.file);
    if (fd < 0) {
      return;
    }
    const std::string name = fmt::format("{:#x}", image.begin);
    Dwfl_Module* module = dwfl_report_elf(dwfl.get(), name.c_str(),
                                          image.file.c_str(), fd, image.bias,
                                          /*add_p_vaddr=*/true);
    if (module == nullptr) {
      close(fd);
    }
  }

  // A word of the process's memory. What a core dump leaves out of an image,
  // code and constants, no unwinding table of a compiler asks for.
  bool ReadWord(uint64_t addr, Dwarf_Word& word) {
    return !Late() && core->Read(TraceeAddr(addr),
                                 std::as_writable_bytes(std::span(&word, 1)));
  }

  // Of the abort_msg_s that the word at `pointer` points to: its size, itself
  // included, and text up to a NUL.
  std::string TextAt(uint64_t pointer) const {
    uint64_t at = 0;
    uint32_t size_bytes = 0;
    if (!core->Read(TraceeAddr(pointer),
                    std::as_writable_bytes(std::span(&at, 1))) ||
        !core->Read(TraceeAddr(at),
                    std::as_writable_bytes(std::span(&size_bytes, 1)))) {
      return "";
    }
    std::string text;
    char c = 0;
    for (uint64_t i = sizeof size_bytes;
         i < size_bytes && text.size() < kMessageBytesMax; ++i) {
      if (!core->Read(TraceeAddr(at + i),
                      std::as_writable_bytes(std::span(&c, 1))) ||
          c == '\0') {
        break;
      }
      text += c;
    }
    return text;
  }

  bool SetRegisters(Dwfl_Thread* to) const {
    std::array<Dwarf_Word, kDwarfOrder.size() + 1> regs = {};
    for (size_t i = 0; i < kDwarfOrder.size(); ++i) {
      regs[i] = thread.gpr[kDwarfOrder[i]];
    }
    regs.back() = thread.rip.as_int();
    return dwfl_thread_state_registers(to, 0, regs.size(), regs.data());
  }

  int TakeFrame(Dwfl_Frame* frame) {
    Dwarf_Addr pc = 0;
    bool is_activation = false;
    if (!dwfl_frame_pc(frame, &pc, &is_activation)) {
      return DWARF_CB_ABORT;
    }
    if (stack->frames.size() == frames_max) {
      stack->cut_off = true;
      return DWARF_CB_ABORT;
    }
    stack->frames.push_back(
        {.pc = TraceeAddr(pc),
         .is_return = !is_activation && !stack->frames.empty()});
    return Late() ? DWARF_CB_ABORT : DWARF_CB_OK;
  }

  void Attach() {
    static const Dwfl_Thread_Callbacks callbacks = {
        .next_thread = [](Dwfl*, void* arg, void** thread_arg) -> pid_t {
          if (*thread_arg != nullptr) {
            return 0;
          }
          *thread_arg = arg;
          return kAnyPid;
        },
        .get_thread = nullptr,
        .memory_read = [](Dwfl*, Dwarf_Addr addr, Dwarf_Word* word,
                          void* arg) { return Of(arg).ReadWord(addr, *word); },
        .set_initial_registers =
            [](Dwfl_Thread* to, void* arg) { return Of(arg).SetRegisters(to); },
        .detach = nullptr,
        .thread_detach = nullptr};
    attached =
        dwfl_attach_state(dwfl.get(), nullptr, kAnyPid, &callbacks, this);
  }

  // Appends to the stack what can be unwound from the registers of `thread`.
  void UnwindFromRegisters() {
    const size_t before = stack->frames.size();
    if (attached) {
      (void)dwfl_getthread_frames(
          dwfl.get(), kAnyPid,
          [](Dwfl_Frame* frame, void* arg) { return Of(arg).TakeFrame(frame); },
          this);
    }
    if (stack->frames.size() == before) {
      stack->frames.push_back({.pc = thread.rip});
    }
  }

  // A call of an address without code has pushed its return address, and
  // nothing else has happened since.
  bool StepOutOfNowhere() {
    Dwarf_Word caller = 0;
    if (images.Find(thread.rip) != nullptr ||
        !ReadWord(thread.gpr[kRsp], caller) ||
        images.Find(TraceeAddr(caller)) == nullptr) {
      return false;
    }
    stack->frames.push_back({.pc = thread.rip});
    thread.rip = TraceeAddr(caller);
    thread.gpr[kRsp] += sizeof caller;
    return true;
  }

  // An image that refers to a shared file of debug information has no lines
  // here: libdw would open that file, by a name that the image gives.
  bool HasLines(Dwfl_Module* module) {
    if (without_lines.contains(module)) {
      return false;
    }
    Dwarf_Addr bias = 0;
    Dwarf* dwarf = dwfl_module_getdwarf(module, &bias);
    const char* name = nullptr;
    const void* build_id = nullptr;
    if (dwarf == nullptr ||
        dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &build_id) != 0) {
      without_lines.insert(module);
      return false;
    }
    return true;
  }
};

Unwinder::Unwinder(const LoadedImages& images, const CoreDump* core)
    : session_(new Session{.images = images, .core = core}) {
  Session& session = *session_;
  session.dwfl.reset(dwfl_begin(&kCallbacks));
  if (session.dwfl == nullptr) {
    return;
  }
  dwfl_report_begin(session.dwfl.get());
  for (const LoadedImage& image : images.all()) {
    if (!image.file.empty()) {
      session.Report(image);
    }
  }
  (void)dwfl_report_end(session.dwfl.get(), nullptr, nullptr);
  if (core != nullptr) {
    session.Attach();
  }
}

Unwinder::~Unwinder() = default;

Unwinder::Stack Unwinder::Unwind(const DumpThread& thread, size_t frames_max,
                                 Clock::time_point deadline) {
  Session& session = *session_;
  CLEW_CHECK(session.core != nullptr, "no memory to unwind");
  Stack stack;
  session.thread = thread;
  session.frames_max = frames_max;
  session.deadline = deadline;
  session.stack = &stack;
  const bool called_nowhere = session.StepOutOfNowhere();
  session.UnwindFromRegisters();
  if (called_nowhere && stack.frames.size() > 1) {
    stack.frames[1].is_return = true;
  }
  session.stack = nullptr;
  stack.cut_off = stack.cut_off || stack.late;
  return stack;
}

CodePlace Unwinder::Find(TraceeAddr at) {
  Session& session = *session_;
  CodePlace place;
  Dwfl_Module* module = session.dwfl == nullptr
                            ? nullptr
                            : dwfl_addrmodule(session.dwfl.get(), at.as_int());
  if (module == nullptr) {
    return place;
  }
  GElf_Off offset = 0;
  GElf_Sym symbol;
  const char* name = dwfl_module_addrinfo(module, at.as_int(), &offset, &symbol,
                                          nullptr, nullptr, nullptr);
  // The symbol before a place is not one that covers it.
  if (name != nullptr && offset < symbol.st_size) {
    place.symbol.assign(name, strnlen(name, kNameBytesMax));
    place.symbol_offset = offset;
    place.symbol_bytes = symbol.st_size;
  } else {
    FindRow(module, at.as_int(), place);
  }
  Dwfl_Line* line = session.HasLines(module)
                        ? dwfl_module_getsrc(module, at.as_int())
                        : nullptr;
  if (line != nullptr) {
    const char* file =
        dwfl_lineinfo(line, nullptr, &place.line, nullptr, nullptr, nullptr);
    place.file = file == nullptr ? "" : std::string(file, strnlen(file, 4096));
  }
  return place;
}

bool Unwinder::HasLines(TraceeAddr place) {
  Session& session = *session_;
  Dwfl_Module* module =
      session.dwfl == nullptr
          ? nullptr
          : dwfl_addrmodule(session.dwfl.get(), place.as_int());
  return module != nullptr && session.HasLines(module);
}

std::string Unwinder::AbortMessage() {
  Session& session = *session_;
  if (session.core == nullptr || session.dwfl == nullptr) {
    return "";
  }
  uint64_t pointer = 0;
  for (const LoadedImage& image : session.images.all()) {
    Dwfl_Module* module =
        image.file.empty() || !HasCLibrary(image)
            ? nullptr
            : dwfl_addrmodule(session.dwfl.get(), image.begin.as_int());
    if (module != nullptr && pointer == 0) {
      pointer = AddressOf(module, "__abort_msg");
    }
  }
  return pointer == 0 ? "" : session.TextAt(pointer);
}

std::string ReadableName(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      symbol.starts_with("_Z")
          ? abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status)
          : nullptr,
      std::free);
  if (text == nullptr) {
    return symbol;
  }
  return {text.get(), strnlen(text.get(), Unwinder::kNameBytesMax)};
}

}  // namespace clew::decoder
