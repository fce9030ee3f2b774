#include "common/build_id.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "common/byte_reader.h"
#include "common/digest.h"
#include "common/load_at.h"

namespace clew {
namespace {

using Bytes = std::span<const std::byte>;

uint64_t Padded(uint64_t size) { return (size + 3) & ~uint64_t{3}; }

// The build-id among the notes, or empty.
Result<std::vector<std::byte>> FindAmong(ByteReader notes) {
  while (!notes.at_end()) {
    CLEW_ASSIGN_OR_RETURN(name_size, notes.Read<uint32_t>("n_namesz"));
    CLEW_ASSIGN_OR_RETURN(desc_size, notes.Read<uint32_t>("n_descsz"));
    CLEW_ASSIGN_OR_RETURN(type, notes.Read<uint32_t>("n_type"));
    CLEW_ASSIGN_OR_RETURN(name, notes.ReadText(Padded(name_size), "name"));
    CLEW_ASSIGN_OR_RETURN(desc, notes.ReadBytes(desc_size, "description"));
    if (type == NT_GNU_BUILD_ID && name == "GNU" &&
        desc_size <= kBuildIdBytesMax) {
      return std::vector<std::byte>(desc.begin(), desc.end());
    }
    CLEW_RETURN_IF_ERROR(notes.Skip(
        std::min(Padded(desc_size) - desc_size, notes.remaining_bytes()),
        "padding"));
  }
  return std::vector<std::byte>();
}

template <class Ehdr, class Phdr>
std::vector<std::byte> FindIn(Bytes elf) {
  Ehdr ehdr;
  if (!LoadAt(elf, 0, ehdr)) {
    return {};
  }
  for (uint64_t i = 0; i < ehdr.e_phnum; ++i) {
    Phdr phdr;
    if (!LoadAt(elf, ehdr.e_phoff + i * sizeof phdr, phdr)) {
      return {};
    }
    if (phdr.p_type != PT_NOTE || phdr.p_offset > elf.size() ||
        phdr.p_filesz > elf.size() - phdr.p_offset) {
      continue;
    }
    const auto found = FindAmong(
        ByteReader(elf.subspan(phdr.p_offset, phdr.p_filesz), "notes"));
    if (found && !found->empty()) {
      return *found;
    }
  }
  return {};
}

}  // namespace

std::vector<std::byte> BuildIdOf(Bytes elf) {
  std::array<unsigned char, EI_NIDENT> ident;
  if (!LoadAt(elf, 0, ident) ||
      std::memcmp(ident.data(), ELFMAG, SELFMAG) != 0) {
    return {};
  }
  switch (ident[EI_CLASS]) {
    case ELFCLASS32:
      return FindIn<Elf32_Ehdr, Elf32_Phdr>(elf);
    case ELFCLASS64:
      return FindIn<Elf64_Ehdr, Elf64_Phdr>(elf);
    default:
      return {};
  }
}

std::vector<std::byte> ImageIdOf(Bytes file) {
  std::vector<std::byte> id = BuildIdOf(file);
  if (id.empty()) {
    static_assert(std::endian::native == std::endian::little);
    const uint64_t digest = Digest(file);
    id.resize(sizeof digest);
    std::memcpy(id.data(), &digest, sizeof digest);
  }
  return id;
}

}  // namespace clew
