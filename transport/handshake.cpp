#include "transport/handshake.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "actors/actor_ref.hpp"
#include "actors/base/check.hpp"
#include "actors/base/digest.hpp"

namespace troupe::transport {
namespace {

constexpr std::uint32_t kMagic = 0x48505254;  // "TRPH"
constexpr std::uint16_t kVersion = 1;
constexpr std::string_view kWelcome = "TRPwelco";
constexpr std::string_view kConnectingLabel = "troupe link 1: connecting";
constexpr std::string_view kAcceptingLabel = "troupe link 1: accepting!";

struct HelloFields {
  std::uint16_t version = kVersion;
  std::uint8_t connects = 0;
  std::uint32_t size = 0;
  Rank from{};
  Rank to{};  ///< of an accepting side that does not know yet: unknown
  JobId job{};
  std::uint64_t build = 0;
  Nonce nonce{};
};

BytesView as_bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

// One layout for both directions: visit(field) in the order of the bytes.
template <class Fields, class Visit>
void each_field(Fields& fields, std::uint32_t& magic, std::uint8_t& zero, Visit visit) {
  visit(magic), visit(fields.version), visit(fields.connects), visit(zero), visit(fields.size), visit(fields.from), visit(fields.to);
  visit(fields.job), visit(fields.build), visit(fields.nonce);
}

std::uint64_t build_id_of_file() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  Digester digester;
  std::vector<char> block(1 << 20);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())), file.gcount() > 0) {
    digester.add(std::string_view(block.data(), static_cast<std::size_t>(file.gcount())));
  }
  return digester.digest().low;
}

// dl_iterate_phdr's first object is the program itself; its notes hold NT_GNU_BUILD_ID when the linker wrote one.
int find_build_note(dl_phdr_info* info, std::size_t, void* found) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    const char* end = at + info->dlpi_phdr[i].p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof(note));
      const char* name = at + sizeof(note);
      const char* description = name + ((note.n_namesz + 3) & ~3U);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
        *static_cast<std::uint64_t*>(found) = digest64(std::string_view(description, note.n_descsz));
        return 1;
      }
      at = description + ((note.n_descsz + 3) & ~3U);
    }
  }
  return 1;
}

}  // namespace

Result<void> fill_random(std::span<std::byte> bytes) {
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) == 1) return {};
  return Error{ErrorCode::io, "random bytes for the job's secret: OpenSSL's generator has no entropy"};
}

std::uint64_t build_id() {
  static const std::uint64_t id = [] {
    std::uint64_t found = 0;
    dl_iterate_phdr(&find_build_note, &found);
    return found != 0 ? found : build_id_of_file();
  }();
  return id;
}

Handshake::Handshake(const Membership& own, Rank peer, const Nonce& nonce, bool connects)
    : own_(own),
      peer_(peer),
      nonce_(nonce),
      connects_(connects),
      state_(connects ? State::connecting_hello : State::accepting_hello),
      wanted_(connects ? kHelloBytes + kProofBytes : kHelloBytes) {}

Handshake Handshake::connecting(const Membership& own, Rank peer, const Nonce& nonce) {
  Handshake handshake(own, peer, nonce, true);
  handshake.hellos_[0] = handshake.own_hello();
  handshake.say(handshake.hellos_[0]);
  return handshake;
}

Handshake Handshake::accepting(const Membership& own, const Nonce& nonce) { return {own, kRankUnknown, nonce, false}; }

Bytes Handshake::take_output() { return std::exchange(output_, {}); }

Handshake::Hello Handshake::own_hello() const {
  HelloFields fields{
      .connects = connects_, .size = own_.size, .from = own_.rank, .to = peer_, .job = own_.job, .build = own_.build, .nonce = nonce_};
  std::uint32_t magic = kMagic;
  std::uint8_t zero = 0;
  Hello hello{};
  std::byte* at = hello.data();
  each_field(fields, magic, zero, [&at](const auto& field) {
    std::memcpy(at, &field, sizeof(field));
    at += sizeof(field);
  });
  TROUPE_CHECK(at == hello.data() + hello.size(), "kHelloBytes is the sum of the fields");
  return hello;
}

Result<void> Handshake::check_hello(BytesView bytes, bool from_connecting) {
  HelloFields fields;
  std::uint32_t magic = 0;
  std::uint8_t zero = 0;
  const std::byte* at = bytes.data();
  each_field(fields, magic, zero, [&at](auto& field) {
    std::memcpy(&field, at, sizeof(field));
    at += sizeof(field);
  });
  const auto refuse = [](ErrorCode code, std::string detail) { return Error{code, "handshake: " + std::move(detail)}; };
  if (magic != kMagic) return refuse(ErrorCode::corrupt, fmt::format("magic: want {:08x}, got {:08x}", kMagic, magic));
  if (fields.version != kVersion) return refuse(ErrorCode::unsupported, fmt::format("version: want {}, got {}", kVersion, fields.version));
  if (fields.connects != (from_connecting ? 1 : 0) || zero != 0) return refuse(ErrorCode::corrupt, "role: the other side takes our own");
  if (fields.job != own_.job) return refuse(ErrorCode::unauthorised, "the other side belongs to another job");
  if (fields.build != own_.build) {
    return refuse(ErrorCode::unsupported,
                  fmt::format("build: want {:016x}, got {:016x} from rank {}; start every rank from the same program", own_.build,
                              fields.build, index(fields.from)));
  }
  if (fields.size != own_.size)
    return refuse(ErrorCode::bad_input, fmt::format("ranks in the job: want {}, got {}", own_.size, fields.size));
  if (index(fields.from) >= own_.size || fields.from == own_.rank)
    return refuse(ErrorCode::bad_input, fmt::format("rank: got {} of {}", index(fields.from), own_.size));
  if (from_connecting ? fields.to != own_.rank : fields.from != peer_) {
    return refuse(ErrorCode::bad_input,
                  fmt::format("rank {} answers where rank {} was wanted", index(from_connecting ? own_.rank : fields.from),
                              index(from_connecting ? fields.to : peer_)));
  }
  if (!from_connecting && fields.to != own_.rank) return refuse(ErrorCode::bad_input, "the other side answers somebody else");
  peer_ = fields.from;
  return {};
}

Handshake::Proof Handshake::proof(bool of_connecting) const {
  Bytes text;
  const auto append = [&text](BytesView bytes) { text.insert(text.end(), bytes.begin(), bytes.end()); };
  append(as_bytes(of_connecting ? kConnectingLabel : kAcceptingLabel));
  append(hellos_[0]);
  append(hellos_[1]);
  Proof proof{};
  unsigned length = 0;
  const void* done =
      HMAC(EVP_sha256(), own_.secret.data(), static_cast<int>(own_.secret.size()), reinterpret_cast<const unsigned char*>(text.data()),
           text.size(), reinterpret_cast<unsigned char*>(proof.data()), &length);
  TROUPE_CHECK(done != nullptr && length == proof.size(), "HMAC-SHA256 of a short text cannot fail");
  return proof;
}

Result<void> Handshake::feed(BytesView bytes) {
  TROUPE_CHECK(bytes.size() == wanted_ && wanted_ > 0, "exactly what was wanted is fed");
  Result<void> fed = feed_unchecked(bytes);
  if (!fed) {
    state_ = State::failed;
    wanted_ = 0;
  }
  return fed;
}

Result<void> Handshake::feed_unchecked(BytesView bytes) {
  switch (state_) {
    case State::accepting_hello:
      return take_hello(bytes);
    case State::accepting_proof:
      if (auto proven = take_proof(bytes, true); !proven) return proven;
      say(as_bytes(kWelcome));
      state_ = State::done;
      wanted_ = 0;
      return {};
    case State::connecting_hello:
      std::copy_n(bytes.begin(), kHelloBytes, hellos_[1].begin());
      if (auto known = check_hello(bytes.first(kHelloBytes), false); !known) return known;
      if (auto proven = take_proof(bytes.subspan(kHelloBytes), false); !proven) return proven;
      say(proof(true));
      state_ = State::connecting_welcome;
      wanted_ = kWelcomeBytes;
      return {};
    case State::connecting_welcome:
      if (!std::ranges::equal(bytes, as_bytes(kWelcome))) return Error{ErrorCode::corrupt, "handshake: want a welcome, got something else"};
      state_ = State::done;
      wanted_ = 0;
      return {};
    case State::done:
    case State::failed:
      break;
  }
  TROUPE_CHECK(false, "nothing is wanted any more");
}

Result<void> Handshake::take_hello(BytesView bytes) {
  std::copy_n(bytes.begin(), kHelloBytes, hellos_[0].begin());
  Result<void> known = check_hello(bytes, true);
  // A stranger that does not even speak the protocol is told nothing.
  if (!known && known.error().code == ErrorCode::corrupt) return known;
  hellos_[1] = own_hello();
  say(hellos_[1]);
  say(known ? proof(false) : Proof{});
  state_ = State::accepting_proof;
  wanted_ = kProofBytes;
  return known;
}

Result<void> Handshake::take_proof(BytesView bytes, bool of_connecting) {
  const Proof wanted = proof(of_connecting);
  if (CRYPTO_memcmp(bytes.data(), wanted.data(), wanted.size()) == 0) return {};
  return Error{ErrorCode::unauthorised, fmt::format("handshake: rank {} does not hold the job's secret", index(peer_))};
}

}  // namespace troupe::transport
