#ifndef CLEW_TESTS_RECORDER_TRACER_CODE_WRITER_H_
#define CLEW_TESTS_RECORDER_TRACER_CODE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

// Machine code of x86-64 from the fields of its encodings, with labels.
//
// Source: Intel SDM vol. 2, "Instruction Format".

namespace clew::tracer::random_code {

enum Register : uint8_t {
  kRax = 0,
  kRcx = 1,
  kRdx = 2,
  kRbx = 3,
  kRsp = 4,
  kRbp = 5,
  kRsi = 6,
  kRdi = 7,
  kR11 = 11,
};

inline constexpr size_t kInsnBytesMax = 15;

// A place in the code, perhaps one that is not written yet.
enum class Label : uint32_t {};

// What ModRM.rm names.
struct Operand {
  enum class Kind : uint8_t { kRegister, kRelative, kMemory };
  Kind kind = Kind::kRegister;
  uint8_t reg = 0;                 // of kRegister
  uint64_t target = 0;             // of kRelative, unless it has a label
  std::optional<Label> label;      // of kRelative
  std::optional<uint8_t> base;     // of kMemory, as what follows
  std::optional<uint8_t> index;    // not kRsp
  uint8_t scale_bits = 0;          // the index counts 1 << scale_bits bytes
  uint8_t displacement_bytes = 0;  // 0, 1 or 4; 4 without a base
  int64_t displacement = 0;
  bool has_short_address = false;  // an address of 32 bits: prefix 67

  bool is_memory() const { return kind != Kind::kRegister; }
  // Whether a REX prefix has to name it.
  bool NeedsRex() const;
};

Operand InRegister(uint8_t reg);
Operand At(uint64_t addr);
Operand At(Label label);
Operand AtAbsolute(uint64_t addr);  // REQUIRES: below 2^31
// `displacement_bytes` may be raised to 1, which some bases need.
Operand AtBase(uint8_t base, int64_t displacement, uint8_t displacement_bytes);

enum class Scheme : uint8_t { kLegacy, kVex2, kVex3, kEvex };

// As mmmmm of VEX.
enum class OpcodeMap : uint8_t { kOne = 0, k0F = 1, k0F38 = 2, k0F3A = 3 };

// An instruction with a ModRM byte.
struct Insn {
  Scheme scheme = Scheme::kLegacy;
  std::vector<uint8_t> prefixes;  // in front of all that follows
  uint8_t mandatory = 0;          // 66, F2, F3; in VEX and EVEX: pp
  OpcodeMap map = OpcodeMap::kOne;
  uint8_t opcode = 0;
  bool wide = false;  // W
  uint8_t rex = 0;    // more bits of REX, 40: at least an empty one; B and X
                      // alone in VEX and EVEX
  uint8_t reg = 0;    // ModRM.reg: a register or an extension of the opcode
  Operand rm;
  uint8_t immediate_bytes = 0;
  uint64_t immediate = 0;

  // Of VEX and EVEX.
  uint8_t vvvv = 0;    // the register; where none is named, 0
  uint8_t length = 0;  // 0, 1, 2: 128, 256, 512 bits
  // Of EVEX.
  uint8_t mask = 0;
  bool zeroes = false;
  bool broadcasts = false;
};

// The number of its bytes.
size_t Length(const Insn& insn);

class CodeWriter {
 public:
  // `addr` is where the code will run.
  explicit CodeWriter(uint64_t addr) : addr_(addr) {}

  uint64_t start() const { return addr_; }
  uint64_t at() const { return addr_ + bytes_.size(); }

  void Byte(uint64_t value) { bytes_.push_back(static_cast<uint8_t>(value)); }
  void Bytes(std::initializer_list<uint8_t> bytes) {
    bytes_.insert(bytes_.end(), bytes);
  }
  void Number(uint64_t value, size_t bytes);
  void Write(const Insn& insn);

  Label NewLabel();
  void Bind(Label label) { labels_[static_cast<size_t>(label)] = at(); }
  // The label that is bound here.
  Label Here();
  // nullopt if it is not bound yet.
  std::optional<uint64_t> AddressOf(Label label) const {
    return labels_[static_cast<size_t>(label)];
  }

  // A displacement, relative to `bytes_behind` behind it.
  void Displacement(Label label, size_t bytes, size_t bytes_behind = 0);
  void Address(Label label, size_t bytes);

  // REQUIRES: all labels that were used are bound, those of a displacement of a
  // byte in its reach.
  std::vector<uint8_t> Finish();

 private:
  struct Use {
    Label label{};
    size_t offset = 0;
    size_t bytes = 0;
    uint64_t subtracted = 0;
  };

  uint64_t addr_;
  std::vector<uint8_t> bytes_;
  std::vector<std::optional<uint64_t>> labels_;
  std::vector<Use> uses_;
};

}  // namespace clew::tracer::random_code

#endif  // CLEW_TESTS_RECORDER_TRACER_CODE_WRITER_H_
