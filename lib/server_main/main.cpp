// coaccel-serve: an inference server for the plan files of a folder. `coaccel-serve --help` lists its options.
#include "server/config/server_config.hpp"
#include "server/repository/unknown_models.hpp"

#include <coaccel/core/config.hpp>
#include <coaccel/core/log.hpp>
#include <coaccel/server/server.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/strand.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <span>
#include <string>
#include <sys/resource.h>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

namespace {

constexpr int wrong_configuration = 2;

int threads_of(const ca::server::server_options& options) noexcept
{
    if (options.io_threads > 0)
        return options.io_threads;
    return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 8);
}

/// The life of the server from its creation to a signal, which may come at any time.
///
/// All functions run on the strand.
class serving_program {
public:
    explicit serving_program(asio::io_context& io)
        : io_(io), strand_(asio::make_strand(io)), signals_(strand_, SIGINT, SIGTERM), metrics_(io.get_executor())
    {}

    void start(ca::server::server_options options)
    {
        address_ = options.address;
        signals_.async_wait([this](const ca::error_code& ec, int) {
            if (!ec)
                signalled();
        });
        ca::server::server::async_create(
            io_.get_executor(), std::move(options), metrics_,
            asio::bind_executor(strand_,
                                asio::bind_cancellation_slot(creation_.slot(),
                                                             [this](const ca::error_code& ec, ca::server::server made) {
                                                                 created(ec, std::move(made));
                                                             })));
    }

    int status() const noexcept { return status_; }

private:
    void signalled()
    {
        signals_.clear(); // a second signal ends the process at once
        stopping_ = true;
        if (serving_)
            return stop();
        std::cout << "stopping: the server had not started" << std::endl;
        creation_.emit(asio::cancellation_type::terminal);
    }

    void created(const ca::error_code& ec, ca::server::server made)
    {
        if (ec)
            return end(stopping_ && ec == asio::error::operation_aborted ? ca::error_code() : ec);
        serving_ = std::move(made);
        if (stopping_)
            return stop();
        const bool is_v6 = address_.find(':') != std::string::npos;
        std::cout << "listening on http://" << (is_v6 ? "[" : "") << address_ << (is_v6 ? "]" : "") << ':'
                  << serving_.port() << '/' << std::endl;
    }

    void stop()
    {
        std::cout << "stopping: requests that have arrived are answered" << std::endl;
        serving_.async_shutdown(ca::shutdown::drain,
                                asio::bind_executor(strand_, [this](const ca::error_code& ec) { end(ec); }));
    }

    void end(const ca::error_code& ec)
    {
        if (ec)
            std::cerr << "coaccel-serve: " << ec.message() << '\n';
        status_ = ec ? 1 : 0;
        io_.stop();
    }

    asio::io_context& io_;
    asio::strand<asio::io_context::executor_type> strand_;
    asio::signal_set signals_;
    asio::cancellation_signal creation_;
    const ca::telemetry::registry metrics_;
    ca::server::server serving_;
    std::string address_;
    bool stopping_ = false;
    int status_ = 1;
};

/// Runs handlers until the program ends. An exception of one of them does not end the others.
void run_handlers(asio::io_context& io)
{
    while (!io.stopped()) {
        try {
            io.run();
        } catch (const std::exception& e) {
            std::cerr << "coaccel-serve: " << e.what() << std::endl;
        }
    }
}

/// The folders that the options name and the system does not have, one message for each.
std::vector<std::string> missing_folders(const ca::server::server_options& options)
{
    std::vector<std::string> missing;
    const auto check = [&](const char* key, const std::filesystem::path& folder) {
        std::error_code bad;
        if (!std::filesystem::is_directory(folder, bad))
            missing.push_back(std::string(key) + ": there is no folder " + folder.string());
    };
    check("model_folder", options.model_folder);
    if (!options.page_folder.empty())
        check("page_folder", options.page_folder);
    if (options.access_log != "-" && options.access_log != "off")
        check("access_log", std::filesystem::absolute(options.access_log).parent_path());
    return missing;
}

/// As many descriptors as the system permits: each connection needs one, and shells usually set a limit of 1024.
void raise_descriptor_limit() noexcept
{
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

int run(ca::server::server_options options)
{
    const int threads = threads_of(options);
    options.io_threads = threads;
    ca::set_log_sink(options.log, {});
    // A reader of the access log that ends must not end the server.
    std::signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    asio::io_context io(threads);
    serving_program program(io);
    try {
        program.start(std::move(options));
        std::vector<std::jthread> others;
        for (int i = 1; i < threads; ++i)
            others.emplace_back([&io] { run_handlers(io); });
        run_handlers(io);
    } catch (const std::exception& e) {
        std::cerr << "coaccel-serve: " << e.what() << '\n';
        return 1;
    }
    return program.status();
}

} // namespace

int main(int argc, char** argv)
{
    using ca::server::config_action;
    const auto line =
        ca::server::parse_command_line(std::span<const char* const>(argv, argc).subspan(argc > 0 ? 1 : 0));
    if (line.action == config_action::help) {
        std::cout << ca::server::config_help("coaccel-serve");
        return 0;
    }
    if (line.action == config_action::version) {
        std::cout << "coaccel-serve " COACCEL_VERSION_STRING "\n";
        return 0;
    }
    auto config = ca::server::load_config(line);
    for (const auto& e : config.errors)
        std::cerr << "coaccel-serve: " << e.text() << '\n';
    if (!config.errors.empty())
        return wrong_configuration;
    const auto missing = missing_folders(config.options);
    for (const auto& m : missing)
        std::cerr << "coaccel-serve: " << m << '\n';
    if (!missing.empty())
        return wrong_configuration;
    if (line.action == config_action::check) {
        for (const auto& warning :
             ca::server::unknown_models(config.options, ca::server::scan_models(config.options.model_folder)))
            std::cerr << "coaccel-serve: " << warning << '\n';
        std::cout << ca::server::config_text(config.options, ca::server::secrets::hidden);
        return 0;
    }
    return run(std::move(config.options));
}
