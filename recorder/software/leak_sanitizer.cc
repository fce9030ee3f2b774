#include "recorder/software/leak_sanitizer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/os/fd.h"
#include "recorder/software/launch.h"

namespace clew::recorder {
namespace {

// Options of theirs, the later the stronger. Source: LLVM compiler-rt,
// asan_flags.cpp, InitializeFlags; lsan.cpp, InitializeFlags.
constexpr std::string_view kOptions = "LSAN_OPTIONS";
constexpr std::string_view kOptionsOfAddress = "ASAN_OPTIONS";
constexpr std::string_view kOff = "detect_leaks=0";

// The libraries of GCC and of clang begin so.
constexpr std::array<std::string_view, 5> kLibraries = {
    "libasan.", "liblsan.", "libhwasan.", "libclang_rt.asan",
    "libclang_rt.lsan"};
// What a program has that has them in itself.
constexpr std::string_view kSymbol = "__lsan_do_leak_check";

using ElfHandle = std::unique_ptr<Elf, int (*)(Elf*)>;

bool NamesLibrary(std::string_view text) {
  return std::ranges::any_of(kLibraries, [&](std::string_view library) {
    return text.contains(library);
  });
}

// Of the section's table of texts; empty if there is none at `offset`.
std::string_view TextAt(Elf* elf, const GElf_Shdr& section, uint64_t offset) {
  const char* const text = elf_strptr(elf, section.sh_link, offset);
  return text == nullptr ? std::string_view() : text;
}

bool NeedsLibrary(Elf* elf, const GElf_Shdr& section, Elf_Data* data) {
  GElf_Dyn entry;
  for (int i = 0; gelf_getdyn(data, i, &entry) != nullptr; ++i) {
    if (entry.d_tag == DT_NEEDED &&
        NamesLibrary(TextAt(elf, section, entry.d_un.d_val))) {
      return true;
    }
  }
  return false;
}

bool HasSymbol(Elf* elf, const GElf_Shdr& section, Elf_Data* data) {
  GElf_Sym symbol;
  for (int i = 0; gelf_getsym(data, i, &symbol) != nullptr; ++i) {
    if (TextAt(elf, section, symbol.st_name) == kSymbol) {
      return true;
    }
  }
  return false;
}

bool HasLeakSanitizer(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0 || elf_version(EV_CURRENT) == EV_NONE) {
    return false;
  }
  const ElfHandle elf(elf_begin(file.get(), ELF_C_READ_MMAP, nullptr),
                      &elf_end);
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf.get(), section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) {
      continue;
    }
    Elf_Data* const data = elf_getdata(section, nullptr);
    if ((header.sh_type == SHT_DYNAMIC &&
         NeedsLibrary(elf.get(), header, data)) ||
        (header.sh_type == SHT_DYNSYM && HasSymbol(elf.get(), header, data))) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool TurnLeakSanitizerOff(bundle::Surroundings& surroundings) {
  std::string* options = nullptr;
  bool is_there = false;
  for (std::string& variable : surroundings.environment) {
    const std::string_view name =
        std::string_view(variable).substr(0, variable.find('='));
    if ((name == kOptions || name == kOptionsOfAddress) &&
        variable.contains(kOff)) {
      return false;
    }
    if (name == kOptions) {
      options = &variable;
    }
    is_there |= name == "LD_PRELOAD" && NamesLibrary(variable);
  }
  if (!is_there) {
    const auto program = ProgramOf(surroundings);
    is_there = program && HasLeakSanitizer(*program);
  }
  if (!is_there) {
    return false;
  }
  if (options == nullptr) {
    surroundings.environment.push_back(fmt::format("{}={}", kOptions, kOff));
  } else {
    *options += fmt::format(":{}", kOff);
  }
  return true;
}

}  // namespace clew::recorder
