#ifndef COACCEL_PLAN_FILE_TREE_HPP
#define COACCEL_PLAN_FILE_TREE_HPP

#include <coaccel/core/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// Values with their types, lists of values, and records of values with names: how a file describes a plan.
//
// A value is a byte with its node_kind, in a record its name (u16 length, bytes), and its content:
//   boolean      u8, 0 or 1
//   number       u8 dtype, then the number
//   enumerator   u8 dtype of an integer, then the number, then its name (u16 length, bytes)
//   text, bytes  u64 length, then the bytes
//   list         values without names, then an end
//   record       values with names, then an end
// Numbers are in little-endian order.
namespace coaccel::detail {

enum class node_kind : std::uint8_t { boolean, number, enumerator, text, bytes, list, record, end = 0xff };

/// Writes values one after another.
class COACCEL_DECL tree_writer {
public:
    /// The name of the next value. In a list there is none.
    tree_writer& operator[](std::string_view name) noexcept
    {
        name_ = name;
        named_ = true;
        return *this;
    }

    void boolean(bool value);
    void number(dtype type, const void* value);
    void enumerator(dtype type, const void* value, std::string_view name);
    void text(std::string_view value);
    void bytes(std::span<const std::byte> value);
    void begin_list() { begin(node_kind::list); }
    void begin_record() { begin(node_kind::record); }
    void end();

    template <class T>
        requires element<T>
    void number(T value)
    {
        number(dtype_v<T>, &value);
    }

    std::span<const std::byte> written() const noexcept { return out_; }

private:
    void begin(node_kind k);
    void put(const void* data, std::size_t bytes);
    void put_name(std::string_view name);

    template <class T>
    void put(T value)
    {
        put(&value, sizeof(value));
    }

    std::vector<std::byte> out_;
    std::string_view name_;
    bool named_ = false;
};

/// A value that was read. It refers to the bytes that it was read from.
struct node {
    node_kind kind = node_kind::record;
    /// The type of a number or enumerator.
    dtype type = dtype::u8;
    /// The name in a record.
    std::string_view name{};
    /// The name of an enumerator.
    std::string_view enumerator{};
    /// The number, the text or the bytes.
    std::span<const std::byte> data{};
    /// Of a list or record.
    std::vector<node> items{};

    std::string_view text() const noexcept { return {reinterpret_cast<const char*>(data.data()), data.size()}; }
};

/// "a number of type f32", "a text" and so on, for messages.
COACCEL_DECL std::string describe(const node& n);

/// Reads untrusted bytes: an outermost record whose values are read one by one, and so are the items of its lists, so
/// that only one of them is in memory at a time.
class COACCEL_DECL tree_reader {
public:
    /// No item has more values or deeper nesting. The largest op has fewer.
    static constexpr std::size_t most_nodes = 65536;
    static constexpr std::size_t deepest = 8;

    explicit tree_reader(std::span<const std::byte> bytes) noexcept : all_(bytes), left_(bytes) {}

    /// Whether a value of this name is next.
    bool has_next(std::string_view name) const;

    /// Reads the record of this name, which must be next.
    [[nodiscard]] bool get_record(std::string_view name, node& n);

    /// Reads the beginning of the list of this name, which must be next.
    [[nodiscard]] bool open_list(std::string_view name);

    /// Reads the next item of the list, which must be a record. `more` is false at the end of the list.
    [[nodiscard]] bool get_item(node& n, bool& more);

    bool at_end() const noexcept { return left_.empty(); }

    /// Why a function returned false.
    const std::string& problem() const noexcept { return problem_; }

private:
    bool fail(std::string what);
    bool take(std::size_t count, std::span<const std::byte>& bytes);
    bool get_kind(node_kind& k);
    bool get_name(std::string_view& name);
    bool get_type(dtype& type);
    bool get_head(std::string_view name, node_kind wanted);
    bool get_content(node& n, std::size_t depth);
    bool get_items(node& n, std::size_t depth);

    template <class T>
    bool get(T& value)
    {
        std::span<const std::byte> bytes;
        if (!take(sizeof(T), bytes))
            return false;
        std::memcpy(&value, bytes.data(), sizeof(T));
        return true;
    }

    std::span<const std::byte> all_;
    std::span<const std::byte> left_;
    std::size_t nodes_ = 0;
    std::string problem_;
};

} // namespace coaccel::detail

#endif
