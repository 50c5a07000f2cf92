//! The Rust client rocketmq-client-rust with its defaults: sends each 200 ms and push-consumes until SIGTERM or the
//! end of stdin.
#![recursion_limit = "512"]

use std::error::Error;
use std::time::Duration;

use rocketmq_client_rust::{
    ClientResult, ClientRuntime, ClientRuntimeConfig, ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus,
    DefaultMQProducer, DefaultMQPushConsumer, MQPushConsumer, MessageListenerConcurrently,
};
use rocketmq_model::common::message::message_ext::MessageExt;
use rocketmq_model::common::message::message_single::Message;
use rocketmq_runtime::{RuntimeConfig, RuntimeOwner};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{signal, SignalKind};

struct Received;

impl MessageListenerConcurrently for Received {
    fn consume_message(
        &self,
        messages: &[&MessageExt],
        _: &ConsumeConcurrentlyContext,
    ) -> ClientResult<ConsumeConcurrentlyStatus> {
        for each in messages {
            let body = each.body().unwrap_or_default();
            let id = String::from_utf8_lossy(&body);
            println!("{}", json!({"f": "received", "id": id, "broker": each.broker_name().to_string(), "queue": each.queue_id()}));
        }
        Ok(ConsumeConcurrentlyStatus::ConsumeSuccess)
    }
}

async fn send(producer: &DefaultMQProducer, topic: &str, id: &str) {
    let bytes = id.as_bytes().to_vec();
    let message = Message::builder().topic(topic).keys(vec![id.to_string()]).body(bytes).build_unchecked();
    println!("{}", json!({"f": "send", "id": id}));
    let sent = match producer.send(message).await {
        Ok(Some(result)) => {
            let queue = result.message_queue.as_ref();
            let broker = queue.map(|each| each.broker_name().to_string());
            json!({"f": "sent", "id": id, "type": "ok", "broker": broker, "queue": queue.map(|each| each.queue_id())})
        }
        Ok(None) => json!({"f": "sent", "id": id, "type": "fail", "error": "no result"}),
        Err(error) => json!({"f": "sent", "id": id, "type": "fail", "error": error.to_string()}),
    };
    println!("{sent}");
}

async fn end() {
    let mut terminated = signal(SignalKind::terminate()).expect("a handler of SIGTERM");
    let mut rest = Vec::new();
    let mut input = tokio::io::stdin();
    tokio::select! {
        _ = terminated.recv() => {}
        _ = input.read_to_end(&mut rest) => {}
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let name_servers = std::env::var("NAMESRV_ADDR")?;
    let (topic, group) = (std::env::var("NEMESRV_TOPIC")?, std::env::var("NEMESRV_GROUP")?);
    let role = std::env::var("NEMESRV_ROLE").unwrap_or("producer".to_string());
    let owner = RuntimeOwner::plan(RuntimeConfig::default())?.build()?;
    let telemetry = rocketmq_observability::install_global(&Default::default())?;
    let config = ClientRuntimeConfig::default();
    let runtime = ClientRuntime::try_new(owner.root_context().component("client"), config, telemetry.handle())?;
    let mut consumer = DefaultMQPushConsumer::builder(runtime.clone())
        .consumer_group(group.clone())
        .name_server_addr(name_servers.clone())
        .build();
    let mut producer =
        DefaultMQProducer::builder(runtime).producer_group(group).name_server_addr(name_servers).build();
    if role != "producer" {
        consumer.subscribe(topic.as_str(), "*").await?;
        consumer.register_message_listener_concurrently(Received);
        consumer.start().await?;
    }
    if role != "consumer" {
        producer.start().await?;
    }
    println!("{}", json!({"f": "started"}));
    let ending = end();
    tokio::pin!(ending);
    if role == "consumer" {
        ending.await;
    } else {
        let sending = async {
            for count in 0u64.. {
                send(&producer, &topic, &format!("{}-{}", std::process::id(), count)).await;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        tokio::select! {
            _ = ending => {}
            _ = sending => {}
        }
    }
    // what hangs is left behind
    let _ = tokio::time::timeout(Duration::from_millis(1500), async {
        if role != "consumer" {
            producer.shutdown().await;
        }
        if role != "producer" {
            consumer.shutdown().await;
        }
    })
    .await;
    std::process::exit(0)
}
