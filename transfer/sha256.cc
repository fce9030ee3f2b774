#include "transfer/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstdint>
#include <utility>

#include "common/check.h"

namespace clew::transfer {

struct Sha256::Context {
  Context() : md(EVP_MD_CTX_new()) {
    CLEW_CHECK(md != nullptr, "libcrypto gives no context");
    CLEW_CHECK(EVP_DigestInit_ex(md, EVP_sha256(), nullptr) == 1,
               "libcrypto has no SHA-256");
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { EVP_MD_CTX_free(md); }

  EVP_MD_CTX* md;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {}
Sha256::Sha256(Sha256&& other) noexcept = default;
Sha256& Sha256::operator=(Sha256&& other) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::Add(std::span<const std::byte> bytes) {
  const int done = EVP_DigestUpdate(context_->md, bytes.data(), bytes.size());
  CLEW_CHECK(done == 1, "libcrypto cannot digest {} bytes", bytes.size());
}

Sha256::Value Sha256::Finish() {
  Value value;
  unsigned size = 0;
  const int done = EVP_DigestFinal_ex(
      context_->md, reinterpret_cast<unsigned char*>(value.data()), &size);
  CLEW_CHECK(done == 1 && size == kBytes, "SHA-256 has {} bytes", size);
  return value;
}

Sha256::Value Sha256Of(std::span<const std::byte> bytes) {
  Sha256 digest;
  digest.Add(bytes);
  return digest.Finish();
}

Sha256::Value HmacSha256(std::span<const std::byte> key,
                         std::span<const std::byte> bytes) {
  Sha256::Value value;
  unsigned size = 0;
  const unsigned char* made =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
           reinterpret_cast<unsigned char*>(value.data()), &size);
  CLEW_CHECK(made != nullptr && size == Sha256::kBytes,
             "HMAC-SHA256 has {} bytes", size);
  return value;
}

std::optional<Sha256::Value> FromHex(std::string_view text) {
  if (text.size() != 2 * Sha256::kBytes || !IsHex(text)) {
    return std::nullopt;
  }
  Sha256::Value value{};
  for (size_t i = 0; i < text.size(); ++i) {
    const std::byte digit{HexDigitValue(text[i]).value_or(0)};
    value[i / 2] = value[i / 2] << 4 | digit;
  }
  return value;
}

}  // namespace clew::transfer
