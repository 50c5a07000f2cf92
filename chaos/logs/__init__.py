"""Log files of RocketMQ's servers and clients become events: lines.py one line, frames.py folders of them by Spark."""
