#ifndef COACCEL_CORE_LOG_QUEUE_HPP
#define COACCEL_CORE_LOG_QUEUE_HPP

#include <coaccel/core/log.hpp>

#include <cstddef>
#include <deque>
#include <optional>
#include <string>

namespace coaccel::detail {

struct log_message {
    log_level level{};
    std::string text;
    /// Null: the message is for the sink.
    void (*receiver)(std::string_view message) = nullptr;
};

/// Messages that wait for delivery, bounded by count and bytes. Messages that do not fit are counted; a message with
/// that count takes their position.
class COACCEL_DECL log_queue {
public:
    static constexpr std::size_t most_messages = 1024;
    static constexpr std::size_t most_bytes = std::size_t(256) << 10;
    /// Longer texts are truncated.
    static constexpr std::size_t longest_text = std::size_t(16) << 10;

    /// Whether a message with this text fits.
    bool has_room(std::string_view text) const noexcept;
    void push(log_level level, std::string_view text, void (*receiver)(std::string_view) = nullptr);
    /// Counts one message that is not delivered.
    void drop() noexcept { ++dropped_; }
    void forget_dropped() noexcept { dropped_ = 0; }

    std::optional<log_message> pop();
    bool empty() const noexcept { return messages_.empty() && dropped_ == 0; }

private:
    log_message take_dropped();

    std::deque<log_message> messages_;
    std::size_t bytes_ = 0;
    std::uint64_t dropped_ = 0;
};

} // namespace coaccel::detail

#endif
