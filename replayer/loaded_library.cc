#include "replayer/loaded_library.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "replayer/load_value.h"

namespace clew::replayer {
namespace {

// All of these come from the process's own memory, so none is believed.
constexpr uint64_t kProgramHeadersMax = 256;
constexpr uint64_t kDynamicEntriesMax = 1024;
constexpr uint64_t kLibrariesMax = 16'384;
constexpr uint64_t kNamespacesMax = 64;

uint64_t AddrOf(const void* pointer_of_process) {
  return reinterpret_cast<uintptr_t>(pointer_of_process);
}

uint64_t AuxValue(std::span<const std::byte> auxv, uint64_t type) {
  for (; auxv.size() >= sizeof(Elf64_auxv_t);
       auxv = auxv.subspan(sizeof(Elf64_auxv_t))) {
    Elf64_auxv_t entry;
    std::memcpy(&entry, auxv.data(), sizeof(entry));
    if (entry.a_type == type) {
      return entry.a_un.a_val;
    }
  }
  return 0;
}

// The address of the program's dynamic section; 0 if it has none.
uint64_t FindDynamic(const ReplayTarget& target) {
  const auto auxv = target.Auxv();
  const uint64_t headers = AuxValue(auxv, AT_PHDR);
  const uint64_t count = AuxValue(auxv, AT_PHNUM);
  uint64_t bias = 0;
  for (uint64_t i = 0; i < count && i < kProgramHeadersMax; ++i) {
    const auto header =
        LoadValue<Elf64_Phdr>(target, headers + i * sizeof(Elf64_Phdr));
    if (header && header->p_type == PT_PHDR) {  // comes before PT_DYNAMIC
      bias = headers - header->p_vaddr;
    } else if (header && header->p_type == PT_DYNAMIC) {
      return bias + header->p_vaddr;
    }
  }
  return 0;
}

// The address of ld.so's struct r_debug; 0 before ld.so has set it.
uint64_t FindDebug(const ReplayTarget& target) {
  const uint64_t dynamic = FindDynamic(target);
  for (uint64_t i = 0; dynamic != 0 && i < kDynamicEntriesMax; ++i) {
    const auto entry =
        LoadValue<Elf64_Dyn>(target, dynamic + i * sizeof(Elf64_Dyn));
    if (!entry || entry->d_tag == DT_NULL) {
      return 0;
    }
    if (entry->d_tag == DT_DEBUG) {
      return entry->d_un.d_ptr;
    }
  }
  return 0;
}

bool IsTextAt(const ReplayTarget& target, uint64_t addr,
              std::string_view text) {
  std::vector<std::byte> bytes(text.size() + 1);
  return target.ReadMemory(TraceeAddr(addr), bytes) == bytes.size() &&
         std::memcmp(bytes.data(), text.data(), text.size()) == 0 &&
         bytes.back() == std::byte(0);
}

// The address at which the list's library of that name begins.
std::optional<uint64_t> FindInList(const ReplayTarget& target, uint64_t list,
                                   std::string_view name) {
  for (uint64_t i = 0; list != 0 && i < kLibrariesMax; ++i) {
    const auto library = LoadValue<link_map>(target, list);
    if (!library) {
      return std::nullopt;
    }
    if (IsTextAt(target, AddrOf(library->l_name), name)) {
      return library->l_addr;
    }
    list = AddrOf(library->l_next);
  }
  return std::nullopt;
}

// dlmopen(3) makes more lists; since version 2 each names the next.
std::optional<uint64_t> FindLibrary(const ReplayTarget& target,
                                    std::string_view name) {
  uint64_t addr = FindDebug(target);
  for (uint64_t i = 0; addr != 0 && i < kNamespacesMax; ++i) {
    const auto debug = LoadValue<r_debug_extended>(target, addr);
    if (!debug) {
      return std::nullopt;
    }
    const auto found = FindInList(target, AddrOf(debug->base.r_map), name);
    if (found) {
      return found;
    }
    addr = debug->base.r_version >= 2 ? AddrOf(debug->r_next) : 0;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::byte> LoadedLibraryStart(const ReplayTarget& target,
                                          std::string_view name) {
  const auto addr = FindLibrary(target, name);
  std::vector<std::byte> bytes(addr ? kLibraryStartBytes : 0);
  bytes.resize(addr ? target.ReadMemory(TraceeAddr(*addr), bytes) : 0);
  return bytes;
}

}  // namespace clew::replayer
