#pragma once

// The walk over a type's one `serialize`, shared by the wire, the digest and the value tree. A class is walked through
// Boost.Serialization's serialize_adl, so its serialize may be a member, a friend or a free function; arithmetic types, enums,
// strings, standard containers, optional, variant, smart pointers and durations are walked here, without Boost's object tracking.
// Unordered containers are refused at compile time: their order could reach a message.

#include <array>
#include <boost/mpl/bool.hpp>
#include <boost/serialization/nvp.hpp>
#include <boost/serialization/serialization.hpp>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// A row-major array with a shape, walked as one array leaf: `auto view = shaped(data, shape); archive & make_nvp("name", view);`.
template <class T>
struct Shaped {
  std::vector<T>& data;
  std::vector<std::uint64_t>& shape;
};
template <class T>
Shaped<T> shaped(std::vector<T>& data, std::vector<std::uint64_t>& shape) {
  return {data, shape};
}

namespace archive_detail {

template <class T>
concept Leaf = std::is_arithmetic_v<T>;
template <class T>
concept BlockLeaf = Leaf<T> && !std::same_as<T, bool>;

template <class T>
inline constexpr bool is_list = false;
template <class T, class A>
inline constexpr bool is_list<std::vector<T, A>> = true;
template <class T, class A>
inline constexpr bool is_list<std::deque<T, A>> = true;

/// Elements in one block of memory, moved as one.
template <class T>
inline constexpr bool is_block = false;
template <BlockLeaf T, class A>
inline constexpr bool is_block<std::vector<T, A>> = true;

template <class T>
inline constexpr bool is_set = false;
template <class T, class C, class A>
inline constexpr bool is_set<std::set<T, C, A>> = true;

template <class T>
inline constexpr bool is_map = false;
template <class K, class V, class C, class A>
inline constexpr bool is_map<std::map<K, V, C, A>> = true;

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
inline constexpr bool is_pointer = false;
template <class T>
inline constexpr bool is_pointer<std::unique_ptr<T>> = true;
template <class T>
inline constexpr bool is_pointer<std::shared_ptr<T>> = true;

template <class T>
inline constexpr bool is_variant = false;
template <class... T>
inline constexpr bool is_variant<std::variant<T...>> = true;

template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;

template <class T>
inline constexpr bool is_array = false;
template <class T, std::size_t N>
inline constexpr bool is_array<std::array<T, N>> = true;

template <class T>
inline constexpr bool is_duration = false;
template <class R, class P>
inline constexpr bool is_duration<std::chrono::duration<R, P>> = true;

template <class T>
inline constexpr bool is_nvp = false;
template <class T>
inline constexpr bool is_nvp<boost::serialization::nvp<T>> = true;

template <class T>
inline constexpr bool is_shaped = false;
template <class T>
inline constexpr bool is_shaped<Shaped<T>> = true;

template <class T>
concept Unordered = requires(T t) {
  typename T::hasher;
  t.bucket_count();
};

}  // namespace archive_detail

/// A saving archive over `Sink`, which provides: scalar(T), text(string_view), array(span<const T>, span<const u64> shape),
/// absent(), present(), begin_list(count)/end_list(), begin_record()/end_record(), name(const char*).
template <class Sink>
class SavingArchive {
 public:
  using is_saving = boost::mpl::true_;
  using is_loading = boost::mpl::false_;

  template <class T>
  Sink& operator&(const T& value) {
    save(value);
    return sink();
  }
  template <class T>
  Sink& operator<<(const T& value) {
    return *this & value;
  }

 private:
  Sink& sink() { return static_cast<Sink&>(*this); }

  template <class T>
  void save(const T& v) {
    using namespace archive_detail;
    static_assert(!Unordered<T>, "unordered containers have no fixed order: use std::map or std::set");
    if constexpr (is_nvp<T>) {
      sink().name(v.name());
      save(v.const_value());
    } else if constexpr (is_shaped<T>) {
      sink().array(std::span(std::as_const(v.data)), std::span<const std::uint64_t>(v.shape));
    } else if constexpr (std::is_enum_v<T>) {
      sink().scalar(static_cast<std::underlying_type_t<T>>(v));
    } else if constexpr (Leaf<T>) {
      sink().scalar(v);
    } else if constexpr (is_duration<T>) {
      sink().scalar(v.count());
    } else if constexpr (std::same_as<T, std::string>) {
      sink().text(v);
    } else if constexpr (std::same_as<T, std::vector<std::byte>>) {
      sink().array(std::span(reinterpret_cast<const std::uint8_t*>(v.data()), v.size()), {});
    } else if constexpr (is_block<T>) {
      sink().array(std::span(v), {});
    } else if constexpr (is_list<T> || is_set<T> || is_map<T> || is_array<T>) {
      sink().begin_list(v.size());
      for (auto&& element : v) save<typename T::value_type>(element);
      sink().end_list();
    } else if constexpr (is_optional<T> || is_pointer<T>) {
      if (!v) return sink().absent();
      sink().present();
      save(*v);
    } else if constexpr (is_variant<T>) {
      sink().begin_list(2);
      sink().scalar(static_cast<std::uint32_t>(v.index()));
      std::visit([this](const auto& held) { save(held); }, v);
      sink().end_list();
    } else if constexpr (std::same_as<T, std::monostate>) {
      sink().absent();
    } else if constexpr (is_tuple<T>) {
      sink().begin_list(std::tuple_size_v<T>);
      std::apply([this](const auto&... held) { (save(held), ...); }, v);
      sink().end_list();
    } else {
      sink().begin_record();
      // serialize is one function for both directions and hence not const; a saving archive never writes through it.
      boost::serialization::serialize_adl(sink(), const_cast<T&>(v), 0U);
      sink().end_record();
    }
  }
};

/// Thrown by loading archives only; decode() and load_value() turn it into an Error.
struct ArchiveError {
  std::string detail;
};

/// A loading archive over `Source`, the mirror of SavingArchive: scalar(T&), text(string&), array(vector<T>&, vector<u64>* shape),
/// bool take_present(), u64 begin_list(fixed count or -1)/end_list(), begin_record()/end_record(), name(const char*).
template <class Source>
class LoadingArchive {
 public:
  using is_saving = boost::mpl::false_;
  using is_loading = boost::mpl::true_;

  template <class T>
  Source& operator&(T&& value) {
    load(value);
    return source();
  }
  template <class T>
  Source& operator>>(T&& value) {
    return *this & std::forward<T>(value);
  }

 private:
  Source& source() { return static_cast<Source&>(*this); }

  template <class T>
  static void want_count(std::uint64_t got, std::uint64_t wanted) {
    if (got != wanted) throw ArchiveError{"want " + std::to_string(wanted) + " elements, got " + std::to_string(got)};
  }

  template <class T>
  void load(T& v) {
    using namespace archive_detail;
    static_assert(!Unordered<T>, "unordered containers have no fixed order: use std::map or std::set");
    if constexpr (is_nvp<std::remove_const_t<T>>) {
      source().name(v.name());
      load(const_cast<std::remove_const_t<T>&>(v).value());
    } else if constexpr (is_shaped<std::remove_const_t<T>>) {
      source().array(v.data, &v.shape);
    } else if constexpr (std::is_enum_v<T>) {
      std::underlying_type_t<T> raw{};
      source().scalar(raw);
      v = static_cast<T>(raw);
    } else if constexpr (Leaf<T>) {
      source().scalar(v);
    } else if constexpr (is_duration<T>) {
      typename T::rep raw{};
      source().scalar(raw);
      v = T{raw};
    } else if constexpr (std::same_as<T, std::string>) {
      source().text(v);
    } else if constexpr (std::same_as<T, std::vector<std::byte>>) {
      source().bytes(v);
    } else if constexpr (is_block<T>) {
      source().array(v, nullptr);
    } else if constexpr (is_array<T>) {
      want_count<T>(source().begin_list(sizeof(typename T::value_type)), v.size());
      for (auto& element : v) load(element);
      source().end_list();
    } else if constexpr (is_list<T>) {
      const std::uint64_t count = source().begin_list(std::is_empty_v<typename T::value_type> ? 0 : 1);
      v.clear();
      for (std::uint64_t i = 0; i < count; ++i) {
        typename T::value_type element{};  // not in place: std::vector<bool> has no references
        load(element);
        v.push_back(std::move(element));
      }
      source().end_list();
    } else if constexpr (is_set<T>) {
      const std::uint64_t count = source().begin_list(1);
      v.clear();
      for (std::uint64_t i = 0; i < count; ++i) {
        typename T::value_type element{};
        load(element);
        v.insert(v.end(), std::move(element));
      }
      source().end_list();
    } else if constexpr (is_map<T>) {
      const std::uint64_t count = source().begin_list(1);
      v.clear();
      for (std::uint64_t i = 0; i < count; ++i) {
        std::pair<typename T::key_type, typename T::mapped_type> entry{};
        load(entry);
        v.insert(v.end(), std::move(entry));
      }
      source().end_list();
    } else if constexpr (is_optional<T>) {
      v.reset();
      if (source().take_present()) load(v.emplace());
    } else if constexpr (is_pointer<T>) {
      v.reset();
      if (!source().take_present()) return;
      auto held = std::make_unique<std::remove_const_t<typename T::element_type>>();
      load(*held);
      v = std::move(held);
    } else if constexpr (is_variant<T>) {
      want_count<T>(source().begin_list(1), 2);
      std::uint32_t index = 0;
      source().scalar(index);
      load_alternative(v, index, std::make_index_sequence<std::variant_size_v<T>>{});
      source().end_list();
    } else if constexpr (std::same_as<T, std::monostate>) {
      if (source().take_present()) throw ArchiveError{"want nothing, got a value"};
    } else if constexpr (is_tuple<T>) {
      want_count<T>(source().begin_list(0), std::tuple_size_v<T>);
      std::apply([this](auto&... held) { (load(held), ...); }, v);
      source().end_list();
    } else {
      source().begin_record();
      boost::serialization::serialize_adl(source(), v, 0U);
      source().end_record();
    }
  }

  template <class V, std::size_t... I>
  void load_alternative(V& v, std::uint32_t index, std::index_sequence<I...>) {
    const bool found = ((index == I && (load(v.template emplace<I>()), true)) || ...);
    if (!found) throw ArchiveError{"want a variant index below " + std::to_string(sizeof...(I)) + ", got " + std::to_string(index)};
  }
};

}  // namespace troupe
