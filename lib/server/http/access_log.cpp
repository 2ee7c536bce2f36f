#include "server/http/access_log.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace coaccel::server {
namespace {

constexpr std::size_t most_waiting = 4 << 20;
constexpr int standard_output = 1;
// How long the destructor waits for the reader of a pipe.
constexpr std::chrono::seconds last_wait{1};
constexpr int poll_milliseconds = 50;

bool is_regular_file(int descriptor) noexcept
{
    struct stat about{};
    return ::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
}

void append_escaped(std::string& out, std::string_view text)
{
    constexpr char digits[] = "0123456789abcdef";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte > 0x20 && byte < 0x7f && c != '"' && c != '\\')
            out += c;
        else
            out.append("\\x").append(1, digits[byte >> 4]).append(1, digits[byte & 15]);
    }
}

} // namespace

std::string access_line(const access_record& r, std::chrono::system_clock::time_point at)
{
    using namespace std::chrono;
    const auto since = at.time_since_epoch();
    const std::time_t whole = static_cast<std::time_t>(duration_cast<seconds>(since).count());
    const int rest = static_cast<int>(duration_cast<milliseconds>(since % seconds(1)).count());
    std::tm utc{};
    gmtime_r(&whole, &utc);
    char text[80];
    const auto stamp = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    std::string line(text, stamp);
    std::snprintf(text, sizeof text, ".%03dZ ", rest);
    line += text;
    append_escaped(line, r.client);
    line += ' ';
    append_escaped(line, r.tenant.empty() ? std::string_view("-") : r.tenant);
    line += " \"";
    append_escaped(line, r.method);
    line += ' ';
    append_escaped(line, r.target.substr(0, 1024));
    std::snprintf(text, sizeof text, "\" %u %llu %llu %.6f\n", r.status,
                  static_cast<unsigned long long>(r.request_bytes), static_cast<unsigned long long>(r.reply_bytes),
                  duration<double>(r.time).count());
    return line += text;
}

result<std::unique_ptr<access_log>> access_log::open(const std::string& path)
{
    if (path.empty() || path == "off")
        return std::unique_ptr<access_log>();
    if (path == "-")
        return std::make_unique<access_log>(standard_output);
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (fd < 0)
        return detail::op_error(errc::file_failed, "access_log",
                                {"cannot open ", path, ": ", std::system_category().message(errno)});
    return std::make_unique<access_log>(fd);
}

access_log::access_log(int descriptor)
    : descriptor_(descriptor), is_file_(is_regular_file(descriptor)), writer_([this] { write_all(); })
{}

access_log::~access_log()
{
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_one();
    writer_.join();
    if (descriptor_ != standard_output)
        ::close(descriptor_);
}

void access_log::add(const access_record& r)
{
    const std::string line = access_line(r, std::chrono::system_clock::now());
    bool wake = false;
    {
        const std::lock_guard lock(mutex_);
        if (waiting_.size() + line.size() > most_waiting) {
            ++dropped_;
            return;
        }
        wake = waiting_.empty();
        if (dropped_ > 0)
            waiting_ += "# " + std::to_string(std::exchange(dropped_, 0)) + " lines were dropped\n";
        waiting_ += line;
    }
    if (wake)
        changed_.notify_one();
}

void access_log::write_all()
{
    std::string now;
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
        if (waiting_.empty())
            return;
        now.clear();
        now.swap(waiting_);
        lock.unlock();
        write(now);
        lock.lock();
    }
}

void access_log::write(std::string_view text)
{
    while (!text.empty()) {
        // A pipe that poll() calls writable takes this much without blocking.
        const std::size_t size = is_file_ ? text.size() : std::min<std::size_t>(text.size(), PIPE_BUF);
        if (!is_file_ && !wait_for_room())
            return;
        const auto n = ::write(descriptor_, text.data(), size);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return; // The disk is full, for example. Requests are more important than their log.
        text.remove_prefix(n > 0 ? static_cast<std::size_t>(n) : 0);
    }
}

/// False: the log ends, and the reader takes nothing.
bool access_log::wait_for_room()
{
    for (;;) {
        if (ending_.load(std::memory_order_relaxed)) {
            const auto now = std::chrono::steady_clock::now();
            if (!last_)
                last_ = now + last_wait;
            else if (now >= *last_)
                return false;
        }
        pollfd wanted{descriptor_, POLLOUT, 0};
        if (::poll(&wanted, 1, poll_milliseconds) > 0)
            return true;
    }
}

} // namespace coaccel::server
