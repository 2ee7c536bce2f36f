#ifndef COACCEL_TELEMETRY_JSON_WRITER_HPP
#define COACCEL_TELEMETRY_JSON_WRITER_HPP

#include <coaccel/core/config.hpp>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace coaccel::detail {

/// Appends JSON to a text. The caller balances begin and end, and gives each member of an object a key.
///
/// Boost.JSON would have to be compiled into this library, where its symbols would collide with those of a program that
/// has Boost.JSON itself.
class COACCEL_DECL json_writer {
public:
    explicit json_writer(std::string& out) noexcept : out_(out) {}

    void begin_object() { open('{'); }
    void end_object() { close('}'); }
    void begin_array() { open('['); }
    void end_array() { close(']'); }

    /// The key of the next value.
    void key(std::string_view name);
    /// The next value begins a line.
    void new_line() noexcept { new_line_ = true; }
    /// The text is UTF-8; bytes that are not become U+FFFD.
    void text(std::string_view value);
    /// Null for NaN and infinity.
    void number(double value);
    /// Exact, also where a double is not.
    void integer(std::uint64_t value);
    /// A number with three decimals.
    void microseconds(std::chrono::nanoseconds t);
    /// A text with 16 digits for each part.
    void hexadecimal(std::initializer_list<std::uint64_t> parts);
    void boolean(bool value) { raw(value ? "true" : "false"); }
    void null() { raw("null"); }

    void member(std::string_view name, std::string_view value) { (key(name), text(value)); }
    void member(std::string_view name, double value) { (key(name), number(value)); }

private:
    void separate();
    void open(char bracket);
    void close(char bracket);
    void raw(std::string_view value);

    std::string& out_;
    /// Whether the next value follows another one.
    bool follows_ = false;
    bool new_line_ = false;
};

} // namespace coaccel::detail

#endif
