#ifndef CLEW_TESTS_SUPPORT_CORE_MAKER_H_
#define CLEW_TESTS_SUPPORT_CORE_MAKER_H_

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace clew {

template <class T>
std::string BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Core dumps of x86-64 as Linux writes them: header, program headers, notes,
// memory.
class CoreMaker {
 public:
  // Contents begin at multiples of `align_bytes` in the file.
  explicit CoreMaker(uint64_t align_bytes = 1) : align_bytes_(align_bytes) {}

  void AddNote(uint32_t type, const std::string& desc) {
    notes_ +=
        BytesOf(Elf64_Nhdr{.n_namesz = 5,
                           .n_descsz = static_cast<Elf64_Word>(desc.size()),
                           .n_type = type});
    notes_.append("CORE\0\0\0\0", 8);
    notes_ += desc;
    notes_.resize((notes_.size() + 3) / 4 * 4);
  }
  // `bytes` of memory from `addr` on, whose `memory_bytes` are more if not all
  // were dumped. `flags`: PF_R and others.
  void AddMemory(uint64_t addr, uint32_t flags, std::string bytes,
                 uint64_t memory_bytes = 0) {
    memory_.push_back(
        {.header = {.p_type = PT_LOAD,
                    .p_flags = flags,
                    .p_offset = 0,
                    .p_vaddr = addr,
                    .p_paddr = 0,
                    .p_filesz = bytes.size(),
                    .p_memsz = memory_bytes != 0 ? memory_bytes : bytes.size(),
                    .p_align = align_bytes_},
         .bytes = std::move(bytes)});
  }

  std::string File() const {
    std::string file = BytesOf(Header());
    const uint64_t notes_at =
        sizeof(Elf64_Ehdr) + (memory_.size() + 1) * sizeof(Elf64_Phdr);
    file += BytesOf(Elf64_Phdr{.p_type = PT_NOTE,
                               .p_flags = 0,
                               .p_offset = notes_at,
                               .p_vaddr = 0,
                               .p_paddr = 0,
                               .p_filesz = notes_.size(),
                               .p_memsz = 0,
                               .p_align = 4});
    uint64_t at = Aligned(notes_at + notes_.size());
    for (const Memory& memory : memory_) {
      Elf64_Phdr header = memory.header;
      header.p_offset = at;
      file += BytesOf(header);
      at = Aligned(at + memory.bytes.size());
    }
    file += notes_;
    for (const Memory& memory : memory_) {
      file.resize(Aligned(file.size()));
      file += memory.bytes;
    }
    return file;
  }

 private:
  struct Memory {
    Elf64_Phdr header;
    std::string bytes;
  };

  uint64_t Aligned(uint64_t offset) const {
    return (offset + align_bytes_ - 1) / align_bytes_ * align_bytes_;
  }
  Elf64_Ehdr Header() const {
    Elf64_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_CORE;
    header.e_machine = EM_X86_64;
    header.e_version = EV_CURRENT;
    header.e_phoff = sizeof header;
    header.e_ehsize = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = static_cast<Elf64_Half>(memory_.size() + 1);
    return header;
  }

  uint64_t align_bytes_;
  std::string notes_;
  std::vector<Memory> memory_;
};

}  // namespace clew

#endif  // CLEW_TESTS_SUPPORT_CORE_MAKER_H_
