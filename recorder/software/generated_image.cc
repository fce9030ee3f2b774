#include "recorder/software/generated_image.h"

#include <algorithm>
#include <span>

#include "common/byte_reader.h"
#include "common/os/file.h"
#include "recorder/qemu/guest_memory.h"
#include "recorder/qemu/raw_code.h"

namespace clew::recorder {
namespace {

constexpr std::byte kInt3{0xcc};

// Nothing that a file holds is between `end` and `addr`.
bool IsNear(uint64_t end, uint64_t addr) {
  return addr == end ||
         (addr > end && (end - 1) / kPageBytes == addr / kPageBytes);
}

struct Piece {
  RawCode head;
  std::span<const std::byte> code;
};

Result<Piece> ReadPiece(ByteReader& reader) {
  CLEW_ASSIGN_OR_RETURN(time, reader.Read<uint64_t>("time"));
  CLEW_ASSIGN_OR_RETURN(addr, reader.Read<uint64_t>("addr"));
  CLEW_ASSIGN_OR_RETURN(size_bytes, reader.Read<uint64_t>("size_bytes"));
  CLEW_ASSIGN_OR_RETURN(replaces, reader.Read<uint64_t>("replaces"));
  CLEW_ASSIGN_OR_RETURN(code, reader.ReadBytes(size_bytes, "code"));
  return Piece{.head = {.time = time,
                        .addr = addr,
                        .size_bytes = size_bytes,
                        .replaces = replaces},
               .code = code};
}

// Maps `piece` behind what is there, as part of the last mapping if it is near.
void Add(const Piece& piece, bool join, GeneratedImage& image) {
  const uint64_t addr = piece.head.addr;
  const TscTicks time(piece.head.time);
  if (join && !image.mappings.empty()) {
    GeneratedMapping& last = image.mappings.back();
    const uint64_t end = last.addr.as_int() + last.size_bytes;
    if (IsNear(end, addr)) {
      image.bytes.insert(image.bytes.end(), addr - end, kInt3);
      image.bytes.insert(image.bytes.end(), piece.code.begin(),
                         piece.code.end());
      last.size_bytes += addr - end + piece.code.size();
      last.time = std::min(last.time, time);
      return;
    }
  }
  image.mappings.push_back({.time = time,
                            .addr = TraceeAddr(addr),
                            .size_bytes = piece.code.size(),
                            .file_offset = image.bytes.size()});
  image.bytes.insert(image.bytes.end(), piece.code.begin(), piece.code.end());
}

}  // namespace

Result<GeneratedImage> MakeGeneratedImage(const std::string& path) {
  GeneratedImage image;
  if (!Exists(path)) {
    return image;
  }
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(path));
  ByteReader reader(file.bytes(), path);
  std::vector<Piece> first;
  std::vector<Piece> later;
  while (!reader.at_end()) {
    CLEW_ASSIGN_OR_RETURN(piece, ReadPiece(reader));
    (piece.head.replaces != 0 ? later : first).push_back(piece);
  }
  const auto addr_of = [](const Piece& piece) { return piece.head.addr; };
  std::ranges::stable_sort(first, {}, addr_of);
  for (const Piece& piece : first) {
    Add(piece, true, image);
  }
  for (const Piece& piece : later) {
    Add(piece, false, image);
  }
  std::ranges::stable_sort(image.mappings, {}, &GeneratedMapping::time);
  return image;
}

}  // namespace clew::recorder
