#include "bench/forms/code.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "common/byte_reader.h"
#include "common/load_at.h"

namespace clew::bench {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::string_view kFrameName = ".eh_frame";
// Of DW_EH_PE_*; the others say what an address is relative to.
constexpr unsigned kFormatBits = 0x0f;

struct Section {
  Elf64_Shdr header = {};
  Bytes bytes;  // empty: the file has none of it

  bool is_code() const {
    return (header.sh_flags & SHF_EXECINSTR) != 0 && !bytes.empty();
  }
};

struct Sections {
  std::vector<Section> code;
  std::optional<Section> frames;
};

// Addresses of code: [begin, end).
struct Extent {
  uint64_t begin = 0;
  uint64_t end = 0;
};

Result<Section> ReadSection(Bytes file, uint64_t offset,
                            const std::string& path) {
  Section section;
  const Elf64_Shdr& header = section.header;
  if (!LoadAt(file, offset, section.header)) {
    return CorruptInput("{}: offset {:#x}: no section header", path, offset);
  }
  if (header.sh_type == SHT_NOBITS || header.sh_type == SHT_NULL) {
    return section;
  }
  if (header.sh_offset > file.size() ||
      file.size() - header.sh_offset < header.sh_size) {
    return CorruptInput("{}: offset {:#x}: a section ends behind the file",
                        path, offset);
  }
  section.bytes = file.subspan(header.sh_offset, header.sh_size);
  return section;
}

bool HasName(const Section& section, const Section& names,
             std::string_view name) {
  const Bytes rest = names.bytes.subspan(
      std::min<size_t>(section.header.sh_name, names.bytes.size()));
  return rest.size() > name.size() &&
         std::memcmp(rest.data(), name.data(), name.size()) == 0 &&
         rest[name.size()] == std::byte{0};
}

Result<Sections> ReadSections(Bytes file, const std::string& path) {
  Elf64_Ehdr head;
  if (!LoadAt(file, 0, head) ||
      std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != EM_X86_64 ||
      (head.e_type != ET_EXEC && head.e_type != ET_DYN)) {
    return CorruptInput("{}: it is no program or library of x86-64", path);
  }
  const auto header_at = [&](uint64_t index) {
    return head.e_shoff + index * sizeof(Elf64_Shdr);
  };
  CLEW_ASSIGN_OR_RETURN(names,
                        ReadSection(file, header_at(head.e_shstrndx), path));
  Sections sections;
  sections.code.reserve(head.e_shnum);
  for (uint64_t i = 0; i < head.e_shnum; ++i) {
    CLEW_ASSIGN_OR_RETURN(section, ReadSection(file, header_at(i), path));
    if (section.is_code()) {
      sections.code.push_back(section);
    } else if (HasName(section, names, kFrameName)) {
      sections.frames = section;
    }
  }
  return sections;
}

size_t EncodedBytes(uint8_t encoding) {
  switch (encoding & 0x07) {
    case DW_EH_PE_udata2:
      return 2;
    case DW_EH_PE_udata4:
      return 4;
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
      return 8;
    default:
      return 0;
  }
}

// How the addresses of a CIE's entries are written: DW_EH_PE_*; DW_EH_PE_omit
// if that is not known. Source: Linux Standard Base Core, "Exception Frames".
uint8_t AddressEncodingOf(const Dwarf_CIE& cie) {
  const std::string_view letters = cie.augmentation;
  if (!letters.starts_with('z')) {
    return letters.empty() ? uint8_t{DW_EH_PE_absptr} : uint8_t{DW_EH_PE_omit};
  }
  const std::span data(cie.augmentation_data, cie.augmentation_data_size);
  size_t at = 0;
  for (const char letter : letters.substr(1)) {
    if (letter == 'S' || letter == 'B') {
      continue;  // they have no data
    }
    if (at >= data.size()) {
      return DW_EH_PE_omit;
    }
    const uint8_t encoding = data[at++];
    if (letter == 'R') {
      return encoding;
    }
    if (letter == 'P') {
      at += EncodedBytes(encoding);
    }
  }
  return DW_EH_PE_absptr;
}

// Sign-extended where the format has a sign.
Result<uint64_t> ReadEncoded(ByteReader& reader, unsigned format) {
  switch (format) {
    case DW_EH_PE_sdata4: {
      CLEW_ASSIGN_OR_RETURN(value, reader.Read<int32_t>("address"));
      return static_cast<uint64_t>(int64_t{value});
    }
    case DW_EH_PE_udata4: {
      CLEW_ASSIGN_OR_RETURN(value, reader.Read<uint32_t>("address"));
      return uint64_t{value};
    }
    case DW_EH_PE_absptr:
    case DW_EH_PE_sdata8:
    case DW_EH_PE_udata8:
      return reader.Read<uint64_t>("address");
    default:
      return Unsupported("{}: offset {:#x}: an address in format {:#x}",
                         reader.source(), reader.file_offset(), format);
  }
}

// Reads the entries of .eh_frame, one after another.
class FrameTable {
 public:
  // `path` is for messages. All must outlive the table.
  FrameTable(Bytes file, const Section& frames, const std::string& path)
      : ident_(reinterpret_cast<const unsigned char*>(file.data())),
        section_(frames),
        path_(path) {
    // libdw only reads it.
    data_.d_buf = const_cast<std::byte*>(frames.bytes.data());
    data_.d_size = frames.bytes.size();
    data_.d_type = ELF_T_BYTE;
    data_.d_version = EV_CURRENT;
  }

  Result<std::vector<Extent>> ReadAll() {
    std::vector<Extent> extents;
    Dwarf_Off offset = 0;
    while (true) {
      CLEW_ASSIGN_OR_RETURN(entry, Next(offset));
      if (!entry) {
        return extents;
      }
      if (!dwarf_cfi_cie_p(&*entry)) {
        CLEW_ASSIGN_OR_RETURN(extent, ExtentOf(entry->fde));
        extents.push_back(extent);
      }
    }
  }

 private:
  // The entry at `offset`, which becomes that of the next one; nullopt: there
  // is none.
  Result<std::optional<Dwarf_CFI_Entry>> Next(Dwarf_Off& offset) {
    Dwarf_CFI_Entry entry;
    const Dwarf_Off at = offset;
    const int status = dwarf_next_cfi(ident_, &data_, /*eh_frame_p=*/true, at,
                                      &offset, &entry);
    if (status < 0) {
      return CorruptInput("{}: {}: offset {:#x}: {}", path_, kFrameName, at,
                          dwarf_errmsg(-1));
    }
    return status == 0 ? std::optional(entry) : std::nullopt;
  }

  Result<uint8_t> EncodingAt(Dwarf_Off cie_offset) {
    if (cie_offset != cie_offset_) {
      Dwarf_Off next = cie_offset;
      CLEW_ASSIGN_OR_RETURN(entry, Next(next));
      if (!entry || !dwarf_cfi_cie_p(&*entry)) {
        return CorruptInput("{}: {}: offset {:#x}: no CIE", path_, kFrameName,
                            cie_offset);
      }
      cie_offset_ = cie_offset;
      encoding_ = AddressEncodingOf(entry->cie);
    }
    return encoding_;
  }

  Result<Extent> ExtentOf(const Dwarf_FDE& fde) {
    CLEW_ASSIGN_OR_RETURN(encoding, EncodingAt(fde.CIE_pointer));
    const auto* start = reinterpret_cast<const std::byte*>(fde.start);
    const auto at = static_cast<uint64_t>(start - section_.bytes.data());
    ByteReader reader(section_.bytes.subspan(at), path_,
                      section_.header.sh_offset + at);
    const unsigned base = encoding & ~kFormatBits;
    if (base != 0 && base != DW_EH_PE_pcrel) {
      return Unsupported("{}: {}: offset {:#x}: addresses in encoding {:#x}",
                         path_, kFrameName, at, encoding);
    }
    CLEW_ASSIGN_OR_RETURN(value, ReadEncoded(reader, encoding & kFormatBits));
    // A size has no sign.
    CLEW_ASSIGN_OR_RETURN(size_bytes,
                          ReadEncoded(reader, encoding & kFormatBits &
                                                  ~unsigned{DW_EH_PE_signed}));
    const uint64_t begin =
        base == 0 ? value : section_.header.sh_addr + at + value;
    return Extent{begin, begin + size_bytes};
  }

  const unsigned char* ident_;
  const Section& section_;
  const std::string& path_;
  Elf_Data data_ = {};
  // Of the last CIE that was asked for: an entry mostly has that of the one
  // before it.
  Dwarf_Off cie_offset_ = ~Dwarf_Off{0};
  uint8_t encoding_ = DW_EH_PE_omit;
};

// Sorts them, and ends each where the next one begins.
void Disentangle(std::vector<Extent>& extents) {
  std::ranges::sort(extents, {}, [](const Extent& extent) {
    return std::pair(extent.begin, extent.end);
  });
  for (size_t i = 1; i < extents.size(); ++i) {
    extents[i - 1].end = std::min(extents[i - 1].end, extents[i].begin);
  }
}

// The bytes of `extent` in a section of code; none if there are not.
Bytes BytesOf(const Extent& extent, const std::vector<Section>& code) {
  for (const Section& section : code) {
    const uint64_t first = section.header.sh_addr;
    if (extent.begin >= first && extent.end >= extent.begin &&
        extent.end - first <= section.bytes.size()) {
      return section.bytes.subspan(extent.begin - first,
                                   extent.end - extent.begin);
    }
  }
  return {};
}

}  // namespace

Result<CodeFile> CodeFile::Open(const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(mapped, MappedFile::Open(path));
  CodeFile file(std::move(mapped));
  const Bytes bytes = file.file_.bytes();
  CLEW_ASSIGN_OR_RETURN(sections, ReadSections(bytes, path));
  if (!sections.frames) {
    return Unsupported("{}: it has no {}", path, kFrameName);
  }
  for (const Section& section : sections.code) {
    file.executable_bytes_ += section.bytes.size();
  }
  CLEW_ASSIGN_OR_RETURN(extents,
                        FrameTable(bytes, *sections.frames, path).ReadAll());
  Disentangle(extents);
  file.ranges_.reserve(extents.size());
  for (const Extent& extent : extents) {
    const Bytes code = BytesOf(extent, sections.code);
    if (!code.empty()) {
      file.ranges_.push_back({extent.begin, code});
    }
  }
  return file;
}

}  // namespace clew::bench
