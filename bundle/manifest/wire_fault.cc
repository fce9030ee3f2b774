#include "bundle/manifest/wire_fault.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "bundle/manifest/varint.h"
#include "common/text/utf8.h"

namespace clew::bundle {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr int kDepthMax = 100;  // protobuf's default
constexpr uint32_t kTagBytesMax = 5;
constexpr uint64_t kLengthMax = 0x7fffffff;

enum WireType : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kLength = 2,
  kGroupStart = 3,
  kGroupEnd = 4,
  kFixed32 = 5,
};

class Walker {
 public:
  explicit Walker(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // Fields up to `end`; behind an unknown group, up to its end tag. `type` is
  // null inside of one. False once there is a fault.
  bool Message(const Descriptor* type, size_t end, int depth,
               std::optional<uint32_t> group = {}) {
    if (depth > kDepthMax) {
      return Fault(at_, "messages nest deeper than {}", kDepthMax);
    }
    while (at_ < end) {
      const size_t start = at_;
      const auto tag = Varint(end, kTagBytesMax);
      if (!tag) {
        return Fault(start, "{}: the number of a field is cut or too long",
                     Name(type));
      }
      const auto number = static_cast<uint32_t>(*tag) >> 3;
      const auto wire = static_cast<WireType>(*tag & 7);
      if (wire == kGroupEnd && group == number) {
        return true;
      }
      if (number == 0 || wire == kGroupEnd || wire > kFixed32) {
        return Fault(start,
                     "{}: field number is {} and wire type {}, wanted a number "
                     "above 0 and type 0, 1, 2 or 5",
                     Name(type), number, static_cast<int>(wire));
      }
      if (!Field(type, number, wire, start, end, depth)) {
        return false;
      }
    }
    return !group ||
           Fault(at_, "{}: group {} does not end", Name(type), *group);
  }

  std::optional<WireFault> fault() && { return std::move(fault_); }

 private:
  template <class... Args>
  bool Fault(size_t offset, fmt::format_string<Args...> format,
             Args&&... args) {
    fault_ = {offset, fmt::format(format, std::forward<Args>(args)...)};
    return false;
  }

  static std::string Name(const Descriptor* type) {
    return type == nullptr ? "unknown group" : type->name();
  }
  static std::string Name(const Descriptor* type, uint32_t number) {
    const FieldDescriptor* field = Find(type, number);
    return fmt::format(
        "{}.{}", Name(type),
        field == nullptr ? fmt::format("(field {})", number) : field->name());
  }
  static const FieldDescriptor* Find(const Descriptor* type, uint32_t number) {
    return type == nullptr ? nullptr
                           : type->FindFieldByNumber(static_cast<int>(number));
  }

  // Moves behind a varint of at most `most` bytes.
  std::optional<uint64_t> Varint(size_t end, uint32_t most) {
    return ReadVarint(bytes_.first(end), at_, most);
  }

  bool Field(const Descriptor* type, uint32_t number, WireType wire,
             size_t start, size_t end, int depth) {
    switch (wire) {
      case kVarint:
        return Varint(end, kVarintBytesMax) ||
               Fault(start, "{}: its varint is cut or has over {} bytes",
                     Name(type, number), kVarintBytesMax);
      case kFixed64:
      case kFixed32: {
        const size_t size = wire == kFixed64 ? 8 : 4;
        if (end - at_ < size) {
          return Fault(start, "{}: needs {} bytes, only {} are left",
                       Name(type, number), size, end - at_);
        }
        at_ += size;
        return true;
      }
      case kLength:
        return Delimited(type, number, start, end, depth);
      default:
        return Message(nullptr, end, depth + 1, number);
    }
  }

  bool Delimited(const Descriptor* type, uint32_t number, size_t start,
                 size_t end, int depth) {
    const auto length = Varint(end, kTagBytesMax);
    if (!length) {
      return Fault(start, "{}: its length is cut or has over {} bytes",
                   Name(type, number), kTagBytesMax);
    }
    if (*length > kLengthMax || *length > end - at_) {
      return Fault(start, "{}: length is {}, only {} bytes are left",
                   Name(type, number), *length, end - at_);
    }
    const size_t content_end = at_ + *length;
    const FieldDescriptor* field = Find(type, number);
    if (field == nullptr) {
      at_ = content_end;
      return true;
    }
    return Content(*field, Name(type, number), content_end, depth);
  }

  // What a known field with a length holds.
  bool Content(const FieldDescriptor& field, const std::string& name,
               size_t end, int depth) {
    switch (field.type()) {
      case FieldDescriptor::TYPE_MESSAGE:
        return Message(field.message_type(), end, depth + 1);
      case FieldDescriptor::TYPE_STRING:
        return Text(name, end);
      case FieldDescriptor::TYPE_BYTES:
        break;
      default:
        return Packed(field, name, end);
    }
    at_ = end;
    return true;
  }

  std::string_view AsText(size_t at, size_t end) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + at, end - at};
  }

  bool Text(const std::string& name, size_t end) {
    while (at_ < end) {
      const size_t size = FirstCharacter(AsText(at_, end)).bytes;
      if (size == 0) {
        return Fault(at_, "{}: byte is {:#04x}, wanted UTF-8", name,
                     static_cast<uint8_t>(bytes_[at_]));
      }
      at_ += size;
    }
    return true;
  }

  // The format has varints alone as repeated numbers; a single number with a
  // length is an unknown field.
  bool Packed(const FieldDescriptor& field, const std::string& name,
              size_t end) {
    while (field.is_repeated() && at_ < end) {
      const size_t start = at_;
      if (!Varint(end, kVarintBytesMax)) {
        return Fault(start, "{}: a varint is cut or has over {} bytes", name,
                     kVarintBytesMax);
      }
    }
    at_ = end;
    return true;
  }

  std::span<const std::byte> bytes_;
  size_t at_ = 0;  // <= bytes_.size()
  std::optional<WireFault> fault_;
};

}  // namespace

std::optional<WireFault> FindWireFault(std::span<const std::byte> bytes,
                                       const Descriptor& type) {
  Walker walker(bytes);
  walker.Message(&type, bytes.size(), 0);
  return std::move(walker).fault();
}

}  // namespace clew::bundle
