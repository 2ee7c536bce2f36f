#ifndef COACCEL_SERVER_HTTP_ACCESS_LOG_HPP
#define COACCEL_SERVER_HTTP_ACCESS_LOG_HPP

#include <coaccel/core/result.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace coaccel::server {

/// One request, for the access log.
struct access_record {
    std::string_view client;
    std::string_view tenant; ///< Empty: none.
    std::string_view method;
    std::string_view target;
    unsigned status = 0;
    std::uint64_t request_bytes = 0; ///< Of the body.
    std::uint64_t reply_bytes = 0;   ///< Of the body.
    std::chrono::nanoseconds time{0};
};

/// The line of a record, with its end: time, client, tenant, "method target", status, bytes in, bytes out, seconds.
/// Bytes that could end a line or a field are escaped.
std::string access_line(const access_record& r, std::chrono::system_clock::time_point at);

/// Appends a line for each request to a file. A thread of its own writes, so that a slow disk delays no request.
///
/// Thread safety: any thread.
class access_log {
public:
    /// "-" is the standard output. Null for "off".
    ///
    /// Errors: errc::file_failed if the file cannot be opened.
    static result<std::unique_ptr<access_log>> open(const std::string& path);

    explicit access_log(int descriptor);
    access_log(const access_log&) = delete;
    access_log& operator=(const access_log&) = delete;
    /// Writes what was added, and closes the file. Lines that a pipe does not take within a second are lost.
    ~access_log();

    /// Never waits for the file. Lines that do not fit into the memory that waits are dropped, and a later line says
    /// how many.
    void add(const access_record& r);

private:
    void write_all();
    void write(std::string_view text);
    bool wait_for_room();

    const int descriptor_;
    const bool is_file_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::string waiting_;
    std::uint64_t dropped_ = 0;
    std::atomic<bool> ending_{false};
    /// Until when the writer waits after the end. Used by the writer only.
    std::optional<std::chrono::steady_clock::time_point> last_;
    std::thread writer_;
};

} // namespace coaccel::server

#endif
