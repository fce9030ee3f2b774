#ifndef CLEW_COLLECTOR_STORE_STORED_LIST_H_
#define CLEW_COLLECTOR_STORE_STORED_LIST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "transfer/file_list.h"
#include "transfer/sha256.h"

namespace clew::collector {

// What is known of a bundle's arrival; kept beside its list.
struct Receipt {
  std::string host;  // who sent it first; empty: no receipt
  int64_t received_at_s = 0;
  bool operator==(const Receipt&) const = default;
};

// What the file of a stored bundle says: see proto/collector_store.proto.
struct StoredList {
  transfer::FileList list;
  std::optional<Receipt> receipt;  // nullopt: stored before there were any
  uint64_t size_bytes = 0;         // of the file
};

std::vector<std::byte> EncodeStored(const transfer::FileList& list,
                                    const Receipt& receipt);
// The list that the file at `path` must hold by its name. kCorruptInput: it
// does not, or the receipt is not of it. kSystem: cannot be read.
[[nodiscard]] Result<StoredList> ReadStoredList(const std::string& path,
                                                const transfer::BundleId& id);

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_STORE_STORED_LIST_H_
