#ifndef COACCEL_SERVER_HTTP_REQUEST_READER_HPP
#define COACCEL_SERVER_HTTP_REQUEST_READER_HPP

#include "server/http/request_head.hpp"

#include <boost/beast/http/basic_parser.hpp>

#include <string>

namespace coaccel::server {

/// Beast's parser of requests, which keeps only the header fields that the server uses, and puts the body into one
/// string. One object reads one request.
class request_reader final : public boost::beast::http::basic_parser<true> {
public:
    request_reader(request_head& head, std::string& body, std::uint32_t max_header_bytes, std::uint64_t max_body_bytes);

private:
    using error_type = boost::beast::error_code;
    using text = boost::beast::string_view;
    using length_type = boost::optional<std::uint64_t>;

    void on_request_impl(boost::beast::http::verb, text method, text target, int version, error_type&) override;
    void on_response_impl(int, text, int, error_type&) override {}
    void on_field_impl(boost::beast::http::field name, text name_text, text value, error_type&) override;
    void on_header_impl(error_type&) override { header_done_ = true; }
    void on_body_init_impl(const length_type& length, error_type&) override;
    std::size_t on_body_impl(text piece, error_type&) override;
    void on_chunk_header_impl(std::uint64_t, text, error_type&) override {}
    std::size_t on_chunk_body_impl(std::uint64_t, text piece, error_type&) override;
    void on_finish_impl(error_type&) override {}

    request_head& head_;
    std::string& body_;
    bool header_done_ = false;
    bool absolute_ = false;
};

} // namespace coaccel::server

#endif
