// Client::Upload.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "common/bytes.h"
#include "transfer/client_connection.h"

namespace clew::transfer {
namespace {

// Chunks of one Put call, and how long it may take: a line slower than 100 kB
// a second needs several calls, each of which goes on where the last one was.
constexpr size_t kChunksPerCall = 16;
constexpr uint64_t kPutMsMax = 600'000;
constexpr uint64_t kPartBytesMax = uint64_t{1} << 20;

// Where a chunk's bytes are.
struct Place {
  std::string file;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
};

std::map<ChunkId, Place> PlacesOf(const FileList& list,
                                  const std::string& folder) {
  std::map<ChunkId, Place> places;
  for (const FileEntry& file : list.files()) {
    for (size_t i = 0; i < file.chunks.size(); ++i) {
      places.emplace(file.chunks[i],
                     Place{.file = folder + "/" + file.path,
                           .offset = i * kChunkBytes,
                           .size_bytes = file.chunk(i).size_bytes});
    }
  }
  return places;
}

Result<std::string> ReadPart(const Place& place, uint64_t offset,
                             uint64_t size) {
  const int fd = open(place.file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return SystemError(errno, fmt::format("cannot open {:?}", place.file));
  }
  std::string part(size, '\0');
  const ssize_t got =
      pread(fd, part.data(), size, static_cast<off_t>(place.offset + offset));
  const int error = errno;
  close(fd);
  if (got < 0) {
    return SystemError(error, fmt::format("cannot read {:?}", place.file));
  }
  if (static_cast<uint64_t>(got) != size) {
    return CorruptInput(
        "{:?} became shorter while it was sent; leave a bundle alone until it "
        "is uploaded",
        place.file);
  }
  return part;
}

struct Missing {
  ChunkId id;
  uint64_t received_bytes = 0;
};

template <class Reply>
Result<std::vector<Missing>> MissingOf(const Reply& reply,
                                       const std::map<ChunkId, Place>& places) {
  std::vector<Missing> missing;
  for (const pb::MissingChunk& chunk : reply.missing()) {
    if (chunk.chunk().size() != Sha256::kBytes ||
        !places.contains(ChunkId(AsBytes(chunk.chunk())))) {
      return CorruptInput(
          "the collector asks for a chunk that the bundle has "
          "not");
    }
    missing.push_back({.id = ChunkId(AsBytes(chunk.chunk())),
                       .received_bytes = chunk.received_bytes()});
  }
  return missing;
}

}  // namespace

// One upload, over as many attempts as it takes.
class Uploader {
 public:
  using Attempt = Client::Connection::Attempt;
  using Stub = Client::Connection::Stub;
  Uploader(Client::Connection& connection, const FileList& list,
           const std::string& folder, ProgressSink* progress,
           UploadStats* stats)
      : connection_(connection),
        list_(list),
        places_(PlacesOf(list, folder)),
        progress_(progress),
        stats_(stats) {}

  // From Begin to Commit.
  [[nodiscard]] Status Run(Attempt* told);

 private:
  using Stream = grpc::ClientReaderWriter<pb::PutPart, pb::PutAck>;

  [[nodiscard]] Status Send(std::vector<Missing> missing, Attempt* told);
  [[nodiscard]] Status SendSome(std::span<const Missing> chunks, Attempt* told);
  // kSystem: the stream is broken, its status says why.
  [[nodiscard]] Status Write(Stream& stream, const Missing& chunk);
  void Acknowledge(Stream& stream, Attempt* told);
  void CountMissing(const std::vector<Missing>& missing);

  Client::Connection& connection_;
  const FileList& list_;
  const std::map<ChunkId, Place> places_;
  ProgressSink* const progress_;
  UploadStats* const stats_;
  uint64_t there_bytes_ = 0;  // of those that the collector has
};

void Uploader::CountMissing(const std::vector<Missing>& missing) {
  there_bytes_ = list_.size_bytes();
  for (const Missing& chunk : missing) {
    const uint64_t bytes = places_.at(chunk.id).size_bytes;
    there_bytes_ -= std::min(bytes, there_bytes_);
  }
  if (progress_ != nullptr) {
    progress_->Update(there_bytes_, list_.size_bytes());
  }
}

Status Uploader::Run(Attempt* told) {
  pb::BeginRequest begin;
  begin.set_files(ToText(list_.Encode()));
  CLEW_ASSIGN_OR_RETURN(begun, connection_.Ask(&Stub::Begin, begin));
  if (begun.bundle() != ToText(list_.id().bytes())) {
    return CorruptInput("the collector gives the bundle another id than {}",
                        list_.id().hex());
  }
  if (begun.stored()) {
    return {};
  }
  CLEW_ASSIGN_OR_RETURN(missing, MissingOf(begun, places_));
  CountMissing(missing);
  CLEW_RETURN_IF_ERROR(Send(std::move(missing), told));
  pb::CommitRequest commit;
  commit.set_bundle(begun.bundle());
  CLEW_ASSIGN_OR_RETURN(committed, connection_.Ask(&Stub::Commit, commit));
  if (committed.missing_size() > 0) {
    return SystemError(
        EAGAIN,
        fmt::format("collector {}: {} chunks are gone again",
                    connection_.options().address, committed.missing_size()));
  }
  return {};
}

Status Uploader::Send(std::vector<Missing> missing, Attempt* told) {
  std::span<const Missing> rest = missing;
  while (!rest.empty()) {
    const auto some = rest.first(std::min(kChunksPerCall, rest.size()));
    CLEW_RETURN_IF_ERROR(SendSome(some, told));
    rest = rest.subspan(some.size());
  }
  return {};
}

Status Uploader::Write(Stream& stream, const Missing& chunk) {
  const Place& place = places_.at(chunk.id);
  const uint64_t part_bytes = std::clamp<uint64_t>(
      connection_.hello().part_bytes_max(), 1, kPartBytesMax);
  pb::PutPart part;
  part.set_chunk(ToText(chunk.id.bytes()));
  uint64_t offset = std::min(chunk.received_bytes, place.size_bytes - 1);
  while (offset < place.size_bytes) {
    const uint64_t size = std::min(part_bytes, place.size_bytes - offset);
    CLEW_ASSIGN_OR_RETURN(bytes, ReadPart(place, offset, size));
    part.set_offset(offset);
    part.set_data(std::move(bytes));
    if (!stream.Write(part)) {
      return SystemError(EPIPE, "the call ended");
    }
    offset += size;
  }
  return {};
}

// Reads acknowledgements until the collector ends the call.
void Uploader::Acknowledge(Stream& stream, Attempt* told) {
  pb::PutAck ack;
  while (stream.Read(&ack)) {
    if (ack.chunk().size() != Sha256::kBytes) {
      continue;
    }
    const auto place = places_.find(ChunkId(AsBytes(ack.chunk())));
    if (place == places_.end()) {
      continue;
    }
    told->advanced = true;
    there_bytes_ += place->second.size_bytes;
    stats_->bytes_sent += place->second.size_bytes;
  }
}

Status Uploader::SendSome(std::span<const Missing> chunks, Attempt* told) {
  Client::Connection::Call call(connection_, kPutMsMax);
  const auto stream = connection_.stub().Put(call.context());
  // Writing may wait for the collector, which may wait for its replies to be
  // read.
  std::thread reader([&] { Acknowledge(*stream, told); });
  Status written;
  for (const Missing& chunk : chunks) {
    written = Write(*stream, chunk);
    if (!written) {
      break;
    }
  }
  const bool ours = !written && (written.error().code != ErrorCode::kSystem ||
                                 written.error().sys_errno != EPIPE);
  if (ours) {
    told->local = true;
    call.context()->TryCancel();
  } else if (written) {
    stream->WritesDone();
  }
  reader.join();
  const Status ended = connection_.ToStatus(stream->Finish());
  if (progress_ != nullptr) {
    progress_->Update(there_bytes_, list_.size_bytes());
  }
  return ours ? written : ended;
}

Result<BundleId> Client::Upload(const std::string& folder,
                                ProgressSink* progress, UploadStats* stats) {
  CLEW_ASSIGN_OR_RETURN(list, FileList::OfBundle(folder));
  CLEW_RETURN_IF_ERROR(Upload(folder, list, progress, stats));
  return list.id();
}

Status Client::Upload(const std::string& folder, const FileList& list,
                      ProgressSink* progress, UploadStats* stats) {
  UploadStats unused;
  UploadStats& counted = stats != nullptr ? *stats : unused;
  counted = {.bytes = list.size_bytes()};
  Uploader uploader(*connection_, list, folder, progress, &counted);
  return connection_->Retry(
      [&](Connection::Attempt* told) { return uploader.Run(told); },
      &counted.attempts);
}

}  // namespace clew::transfer
