#include "device/backends.hpp"
#include "posix/shared_memory.hpp"
#include "worker/child/server.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace coaccel;
using namespace coaccel::worker;

constexpr const char* usage = "coaccel-worker runs the context of an isolated device. It is started by the library, "
                              "never by hand.\n";

detail::unique_fd take(descriptor d)
{
    return detail::unique_fd(static_cast<int>(d));
}

// Programs that a plug-in executes must not inherit the descriptors: they would keep the lifeline open.
void keep_descriptors()
{
    for (int d = static_cast<int>(descriptor::control); d <= static_cast<int>(descriptor::descriptors); ++d)
        (void)::fcntl(d, F_SETFD, FD_CLOEXEC);
}

// Sends the exit status to the parent, because the system reports none if the parent's program ignores SIGCHLD.
void say_status(int status, void*)
{
    const auto word = static_cast<unsigned char>(status);
    (void)::send(static_cast<int>(descriptor::lifeline), &word, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// The lifeline closes when the parent ends; if a process that the parent forked keeps the other end open, the change of
// the parent's pid shows it. On its own thread, because the others may block in the driver.
void end_with_parent()
{
    const pid_t parent = ::getppid();
    std::thread([parent] {
        for (;;) {
            pollfd lifeline{static_cast<int>(descriptor::lifeline), POLLIN, 0};
            const int n = ::poll(&lifeline, 1, 200);
            if (::getppid() != parent || (n > 0 && (lifeline.revents & (POLLHUP | POLLERR | POLLNVAL | POLLIN))))
                ::_exit(0);
        }
    }).detach();
}

void limit(const worker_setup& setup)
{
    if (setup.max_data_bytes == 0)
        return;
    const rlimit most{setup.max_data_bytes, setup.max_data_bytes};
    if (::setrlimit(RLIMIT_DATA, &most) != 0)
        std::fprintf(stderr, "the limit of memory could not be set: %s\n", std::strerror(errno));
}

// If its device files are missing, the driver creates them with a set-uid program, which no_new_privs would make fail.
bool driver_needs_rights(const worker_setup& setup)
{
    return setup.kind != static_cast<std::uint8_t>(device_kind::host) && ::access("/dev/nvidia-uvm", F_OK) != 0 &&
           ::access("/usr/bin/nvidia-modprobe", X_OK) == 0;
}

// Programs executed by this thread and by threads it starts gain no more rights than this process.
void gain_no_rights()
{
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) != 0)
        std::fprintf(stderr, "no_new_privs could not be set: %s\n", std::strerror(errno));
}

device_options options_from(const worker_setup& setup, const char* plugin, fault_injector& faults)
{
    device_options o;
    o.kind = setup.kind <= static_cast<std::uint8_t>(device_kind::cuda) ? static_cast<device_kind>(setup.kind)
                                                                        : device_kind::best;
    o.ordinal = setup.ordinal;
    o.context = setup.context;
    o.host = setup.host;
    o.host.injector = &faults;
    o.cuda = setup.cuda;
    o.plugin = plugin;
    return o;
}

int fail(const error_code& ec)
{
    std::fprintf(stderr, "%s\n", ec.message().c_str());
    return 1;
}

int serve(const char* plugin)
{
    struct stat size{};
    if (::fstat(static_cast<int>(descriptor::control), &size) != 0 || size.st_size < 4096) {
        std::fputs(usage, stderr);
        return exit_usage;
    }
    auto control_area = detail::shared_memory::adopt(take(descriptor::control), static_cast<std::size_t>(size.st_size));
    if (!control_area)
        return fail(control_area.error());
    const auto memory = control_area.value().bytes();
    auto& control = *std::launder(reinterpret_cast<control_block*>(memory.data()));
    if (control.magic_number != magic || control.build != build_identity() || memory.size() != control_bytes) {
        std::fputs("this is coaccel-worker " COACCEL_VERSION_STRING ", and its parent is of another version or build\n",
                   stderr);
        return exit_mismatch;
    }
    control.attached.store(1, std::memory_order_relaxed);
    worker_setup setup;
    std::memcpy(&setup, &control.setup, sizeof(setup));
    // Output of kernels and plug-ins goes to the log, line by line.
    (void)::dup2(2, 1);
    (void)std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
    const bool rights_later = driver_needs_rights(setup);
    if (!rights_later)
        gain_no_rights();
    end_with_parent();
    limit(setup);
    auto staging = detail::shared_memory::adopt(take(descriptor::staging), setup.staging_bytes);
    if (!staging)
        return fail(staging.error());
    auto request_bell = doorbell::adopt_wait(take(descriptor::request_bell));
    auto reply_bell = doorbell::adopt_ring(take(descriptor::reply_bell));
    descriptor_socket descriptors(take(descriptor::descriptors));

    // The parent, which outlives its workers, decides which op fails.
    host_faults plan;
    plan.out_of_memory_at = setup.host.faults.out_of_memory_at;
    plan.delay = setup.host.faults.delay;
    plan.refuse_starts = setup.host.faults.refuse_starts;
    fault_injector faults(plan);

    server s({control, memory.subspan(ring_offset, ring_bytes), memory.subspan(ring_offset + ring_bytes, ring_bytes),
              staging.value().bytes(), request_bell, reply_bell, descriptors});
    const auto options = options_from(setup, plugin, faults);
    const error_code bad = options.context.check();
    auto source = bad ? result<detail::context_source>(bad) : detail::find_backend(options);
    s.run(
        [&](detail::context_identity identity, detail::context_events& events,
            const context_options& how) -> result<std::unique_ptr<detail::context>> {
            if (!source)
                return source.error();
            auto made = source.value().make(identity, events, how);
            if (rights_later)
                gain_no_rights();
            return made;
        },
        faults);
    // The destructor of a dead context may block in the driver forever.
    say_status(0, nullptr);
    ::_exit(0);
}

} // namespace

int main(int argc, char** argv)
{
    if (argc == 2 && argv[1] == std::string_view("--version")) {
        std::puts("coaccel " COACCEL_VERSION_STRING);
        return 0;
    }
    const bool has_plugin = argc == 3 && argv[1] == std::string_view(plugin_flag);
    if (argc > 1 && !has_plugin) {
        std::fputs(usage, stderr);
        return exit_usage;
    }
    keep_descriptors();
    (void)::on_exit(&say_status, nullptr);
    return serve(has_plugin ? argv[2] : nullptr);
}
