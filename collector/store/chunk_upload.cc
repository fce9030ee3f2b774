#include <utility>

#include "collector/store/chunk_store.h"
#include "common/check.h"

namespace clew::collector {

ChunkUpload::ChunkUpload(ChunkStore& store, const ChunkRef& chunk,
                         std::string path)
    : store_(&store), chunk_(chunk), path_(std::move(path)) {}

ChunkUpload::ChunkUpload(ChunkUpload&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      chunk_(other.chunk_),
      path_(std::move(other.path_)),
      file_(std::move(other.file_)),
      created_(other.created_),
      digest_(std::move(other.digest_)),
      received_bytes_(other.received_bytes_) {}

ChunkUpload::~ChunkUpload() {
  if (store_ == nullptr) {
    return;
  }
  file_.reset();
  if (created_) {
    (void)store_->RemoveFile(path_, chunk_.size_bytes);  // nobody left to tell
  } else {
    store_->budget_.Return(chunk_.size_bytes);
  }
}

void ChunkUpload::StartAnew() {
  file_.reset();
  digest_ = Sha256();
  received_bytes_ = 0;
}

Status ChunkUpload::Put(uint64_t offset, std::span<const std::byte> bytes) {
  CLEW_CHECK(store_ != nullptr, "a part for a finished upload");
  if (offset > received_bytes_) {
    return InvalidArgument(
        "chunk {}: part at offset {}, received are {} bytes; send from there",
        chunk_.id.hex(), offset, received_bytes_);
  }
  if (bytes.size() > chunk_.size_bytes - offset) {
    return InvalidArgument(
        "chunk {}: part of {} bytes at offset {}, the chunk has {} bytes",
        chunk_.id.hex(), bytes.size(), offset, chunk_.size_bytes);
  }
  const uint64_t known = received_bytes_ - offset;
  if (bytes.size() <= known) {
    return {};
  }
  const auto fresh = bytes.subspan(known);
  if (file_ == nullptr) {
    created_ = true;  // perhaps, even if it fails
    CLEW_ASSIGN_OR_RETURN(file, store_->files_.Create(path_));
    file_ = std::move(file);
  }
  if (Status written = file_->Append(fresh); !written) {
    StartAnew();
    return written;
  }
  digest_.Add(fresh);
  received_bytes_ += fresh.size();
  return {};
}

Status ChunkUpload::Finish() {
  CLEW_CHECK(store_ != nullptr, "an upload finished twice");
  if (received_bytes_ < chunk_.size_bytes) {
    return InvalidArgument(
        "chunk {}: finished after {} of {} bytes; send from there",
        chunk_.id.hex(), received_bytes_, chunk_.size_bytes);
  }
  const ChunkId found(digest_.Finish());
  const Status synced = found == chunk_.id ? file_->Sync() : Status();
  StartAnew();
  if (found != chunk_.id || !synced) {
    (void)store_->files_.RemoveAll(path_);  // the next part truncates it
  }
  if (found != chunk_.id) {
    return CorruptInput(
        "chunk {}: the {} bytes sent have digest {}; send it again from its "
        "start",
        chunk_.id.hex(), chunk_.size_bytes, found.hex());
  }
  CLEW_RETURN_IF_ERROR(synced);
  CLEW_RETURN_IF_ERROR(store_->Publish(chunk_, path_));
  store_ = nullptr;
  return {};
}

}  // namespace clew::collector
