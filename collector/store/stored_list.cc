#include "collector/store/stored_list.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "common/check.h"
#include "common/os/file.h"
#include "proto/collector_store.pb.h"

namespace clew::collector {
namespace {

using transfer::BundleId;
using transfer::FileList;
using transfer::Sha256;

Sha256::Value ReceiptDigest(const BundleId& id, const Receipt& receipt) {
  constexpr std::string_view kHead = "clew receipt 1\n";
  std::array<std::byte, 8> time{};
  for (size_t i = 0; i < time.size(); ++i) {
    time[i] = static_cast<std::byte>(
        static_cast<uint64_t>(receipt.received_at_s) >> (8 * i));
  }
  Sha256 digest;
  digest.Add(std::as_bytes(std::span(kHead)));
  digest.Add(id.bytes());
  digest.Add(time);
  digest.Add(std::as_bytes(std::span(receipt.host)));
  return digest.Finish();
}

// nullopt: none.
Result<std::optional<Receipt>> ReceiptIn(std::span<const std::byte> bytes,
                                         const BundleId& id) {
  pb::FileList from;
  CLEW_CHECK(from.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())),
             "a list was read, and is none now");
  if (!from.has_receipt()) {
    return std::nullopt;
  }
  Receipt receipt{.host = from.receipt().host(),
                  .received_at_s = from.receipt().received_at_s()};
  const Sha256::Value digest = ReceiptDigest(id, receipt);
  const std::string& found = from.receipt().digest();
  if (receipt.host.empty() ||
      !std::ranges::equal(std::as_bytes(std::span(found)), digest)) {
    return CorruptInput("the receipt of host {:?} is not of this bundle",
                        receipt.host);
  }
  return receipt;
}

}  // namespace

// Protobuf merges what is encoded one behind the other.
std::vector<std::byte> EncodeStored(const FileList& list,
                                    const Receipt& receipt) {
  std::vector<std::byte> bytes = list.Encode();
  if (receipt.host.empty()) {
    return bytes;
  }
  const Sha256::Value digest = ReceiptDigest(list.id(), receipt);
  pb::FileList more;
  pb::FileList::Receipt& to = *more.mutable_receipt();
  to.set_host(receipt.host);
  to.set_received_at_s(receipt.received_at_s);
  to.set_digest(digest.data(), digest.size());
  const std::string encoded = more.SerializeAsString();
  const auto added = std::as_bytes(std::span(encoded));
  bytes.insert(bytes.end(), added.begin(), added.end());
  return bytes;
}

Result<StoredList> ReadStoredList(const std::string& path, const BundleId& id) {
  CLEW_ASSIGN_OR_RETURN(bytes, ReadWholeFile(path));
  // What was stored stays readable when limits are lowered.
  constexpr transfer::FileListLimits kNoLimits{.bundle_bytes_max = UINT64_MAX,
                                               .files_max = SIZE_MAX,
                                               .encoded_bytes_max = INT32_MAX};
  auto list = FileList::Parse(bytes, kNoLimits);
  if (!list) {
    return CorruptInput("{:?}: {}", path, list.error().message);
  }
  if (list->id() != id) {
    return CorruptInput("{:?}: the list has the id {}", path, list->id().hex());
  }
  auto receipt = ReceiptIn(bytes, id);
  if (!receipt) {
    return CorruptInput("{:?}: {}", path, receipt.error().message);
  }
  return StoredList{.list = *std::move(list),
                    .receipt = *std::move(receipt),
                    .size_bytes = bytes.size()};
}

}  // namespace clew::collector
