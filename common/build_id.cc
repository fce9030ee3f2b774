#include "common/build_id.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "common/byte_reader.h"
#include "common/digest.h"
#include "common/round_up.h"

namespace clew {
namespace {

using Bytes = std::span<const std::byte>;

// A kind of note; longer ones of it are taken for none.
struct NoteKind {
  uint32_t type;
  std::string_view owner;
  size_t bytes_max;
};
constexpr NoteKind kBuildId = {NT_GNU_BUILD_ID, "GNU", kBuildIdBytesMax};
constexpr NoteKind kPackage = {0xcafe1a7e, "FDO", kPackageNoteBytesMax};

// The first such one among the notes, or empty.
Result<std::vector<std::byte>> FindAmong(ByteReader notes,
                                         const NoteKind& kind) {
  while (!notes.at_end()) {
    CLEW_ASSIGN_OR_RETURN(name_size, notes.Read<uint32_t>("n_namesz"));
    CLEW_ASSIGN_OR_RETURN(desc_size, notes.Read<uint32_t>("n_descsz"));
    CLEW_ASSIGN_OR_RETURN(type, notes.Read<uint32_t>("n_type"));
    CLEW_ASSIGN_OR_RETURN(name,
                          notes.ReadText(PaddedNoteBytes(name_size), "name"));
    CLEW_ASSIGN_OR_RETURN(desc, notes.ReadBytes(desc_size, "description"));
    if (type == kind.type && name == kind.owner &&
        desc_size <= kind.bytes_max) {
      return std::vector<std::byte>(desc.begin(), desc.end());
    }
    CLEW_RETURN_IF_ERROR(
        notes.Skip(std::min(PaddedNoteBytes(desc_size) - desc_size,
                            notes.remaining_bytes()),
                   "padding"));
  }
  return std::vector<std::byte>();
}

template <class T>
bool ReadAs(const ReadBytesAt& read, uint64_t offset, T& value) {
  return read(offset, std::as_writable_bytes(std::span(&value, 1)));
}

// At most kHeaderBytesMax of them.
template <class Phdr>
std::vector<Phdr> HeadersAt(const ReadBytesAt& read, uint64_t offset,
                            size_t count) {
  std::vector<Phdr> headers(std::min(count, kHeaderBytesMax / sizeof(Phdr)));
  if (!read(offset, std::as_writable_bytes(std::span(headers)))) {
    return {};
  }
  return headers;
}

template <class Ehdr, class Phdr>
std::vector<std::byte> FindIn(const ReadBytesAt& read, uint64_t size_bytes,
                              const NoteKind& kind) {
  Ehdr ehdr;
  if (!ReadAs(read, 0, ehdr)) {
    return {};
  }
  size_t left = kNoteBytesMax;
  for (const Phdr& phdr : HeadersAt<Phdr>(read, ehdr.e_phoff, ehdr.e_phnum)) {
    if (phdr.p_type != PT_NOTE || phdr.p_offset > size_bytes ||
        phdr.p_filesz > size_bytes - phdr.p_offset) {
      continue;
    }
    std::vector<std::byte> notes(std::min<uint64_t>(phdr.p_filesz, left));
    left -= notes.size();
    if (!read(phdr.p_offset, notes)) {
      return {};
    }
    const auto found = FindAmong(ByteReader(notes, "notes"), kind);
    if (found && !found->empty()) {
      return *found;
    }
  }
  return {};
}

std::vector<std::byte> NoteOf(const ReadBytesAt& read, uint64_t size_bytes,
                              const NoteKind& kind) {
  std::array<unsigned char, EI_NIDENT> ident;
  if (!ReadAs(read, 0, ident) ||
      std::memcmp(ident.data(), ELFMAG, SELFMAG) != 0) {
    return {};
  }
  switch (ident[EI_CLASS]) {
    case ELFCLASS32:
      return FindIn<Elf32_Ehdr, Elf32_Phdr>(read, size_bytes, kind);
    case ELFCLASS64:
      return FindIn<Elf64_Ehdr, Elf64_Phdr>(read, size_bytes, kind);
    default:
      return {};
  }
}

std::vector<std::byte> NoteOf(Bytes elf, const NoteKind& kind) {
  const auto read = [elf](uint64_t offset, std::span<std::byte> out) {
    if (offset > elf.size() || elf.size() - offset < out.size()) {
      return false;
    }
    std::ranges::copy(elf.subspan(offset, out.size()), out.begin());
    return true;
  };
  return NoteOf(read, elf.size(), kind);
}

}  // namespace

std::vector<std::byte> BuildIdOf(const ReadBytesAt& read, uint64_t size_bytes) {
  return NoteOf(read, size_bytes, kBuildId);
}

std::vector<std::byte> BuildIdOf(Bytes elf) { return NoteOf(elf, kBuildId); }

std::string PackageNoteOf(Bytes elf) {
  const std::vector<std::byte> note = NoteOf(elf, kPackage);
  const std::string text(reinterpret_cast<const char*>(note.data()),
                         note.size());
  return text.substr(0, text.find('\0'));  // padded
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
