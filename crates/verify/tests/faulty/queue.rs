//! A queue in memory, optionally with a bug.

use std::time::Duration;

use holdfast_verify::queue::{Answer, Delivery, Held, QueueWorkload, Request, Word};
use holdfast_verify::record::Target;
use tokio::time::{Instant, sleep};

use super::{Faulty, travel};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    None,
    /// A visible message is found first and hidden later: two consumers get it.
    DoubleDelivery,
    /// A message is hidden for half of the requested time.
    BackTooEarly,
    /// A consumer that does not delete loses the message.
    LostOnDelivery,
    /// A message is sometimes acknowledged and dropped.
    LostOnPut,
    /// Any earlier receipt of the message is accepted.
    StaleReceiptAccepted,
    /// A deleted message is sometimes kept.
    DeletionForgotten,
    /// The newest receipt is refused after the visibility timeout.
    LateReceiptRefused,
    /// An update does not change the receipt's time.
    UpdateIgnored,
}

#[derive(Clone)]
struct Message {
    id: Word,
    value: u64,
    receipts: Vec<Word>,
    count: u32,
    visible: Instant,
}

#[derive(Default)]
pub struct Server {
    messages: Vec<Message>,
    made: u64,
}

pub type FaultyQueue = Faulty<Server, Bug>;

impl Target<QueueWorkload> for FaultyQueue {
    async fn call(&mut self, request: &Request) -> Option<Answer> {
        travel(&mut self.random).await;
        let unlucky = self.random.percent(10);
        let lock = || self.lock();
        let answer = match request {
            Request::Get { count, visibility_seconds } => {
                let found = lock().visible(*count);
                if self.bug == Bug::DoubleDelivery {
                    sleep(Duration::from_millis(2)).await;
                }
                lock().hand_out(&found, *visibility_seconds, self.bug)
            }
            Request::Put { .. } | Request::Delete(_) | Request::Update { .. } => {
                lock().serve(request, self.bug, unlucky)
            }
        };
        travel(&mut self.random).await;
        Some(answer)
    }
}

impl Server {
    fn word(&mut self) -> Word {
        self.made += 1;
        Word::new(&format!("w{}", self.made))
    }

    fn visible(&self, count: u32) -> Vec<Word> {
        let visible = self.messages.iter().filter(|it| it.visible <= Instant::now());
        visible.take(count as usize).map(|it| it.id.clone()).collect()
    }

    fn hand_out(&mut self, found: &[Word], seconds: u32, bug: Bug) -> Answer {
        let mut deliveries = Vec::new();
        for id in found {
            let receipt = self.word();
            let Some(message) = self.messages.iter_mut().find(|it| it.id == *id) else { continue };
            let hidden = Duration::from_secs(seconds.into());
            let hidden = if bug == Bug::BackTooEarly { hidden / 2 } else { hidden };
            message.visible = Instant::now() + hidden;
            message.receipts.push(receipt.clone());
            message.count += 1;
            let held = Held { message: id.clone(), receipt };
            deliveries.push(Delivery { held, value: message.value, count: message.count });
        }
        if bug == Bug::LostOnDelivery {
            self.messages.retain(|it| it.count < 2);
        }
        Answer::Got(deliveries)
    }

    fn serve(&mut self, request: &Request, bug: Bug, unlucky: bool) -> Answer {
        let refused = || Answer::Refused { status: 404, code: "MessageNotFound".to_owned() };
        match request {
            Request::Put { value, delay_seconds } => {
                let (id, receipt) = (self.word(), self.word());
                let held = Held { message: id.clone(), receipt: receipt.clone() };
                if !(unlucky && bug == Bug::LostOnPut) {
                    let visible = Instant::now() + Duration::from_secs((*delay_seconds).into());
                    let receipts = vec![receipt];
                    let message = Message { id, value: *value, receipts, count: 0, visible };
                    self.messages.push(message);
                }
                Answer::Put(held)
            }
            Request::Get { .. } => Answer::Got(Vec::new()),
            Request::Delete(held) | Request::Update { held, .. } => {
                let Some(index) = self.held(held, bug) else { return refused() };
                match request {
                    Request::Update { visibility_seconds, .. } => {
                        let receipt = self.word();
                        let message = &mut self.messages[index];
                        message.receipts.push(receipt.clone());
                        if bug != Bug::UpdateIgnored {
                            let hidden = Duration::from_secs((*visibility_seconds).into());
                            message.visible = Instant::now() + hidden;
                        }
                        Answer::Updated { receipt }
                    }
                    Request::Put { .. } | Request::Get { .. } | Request::Delete(_) => {
                        if !(unlucky && bug == Bug::DeletionForgotten) {
                            self.messages.remove(index);
                        }
                        Answer::Deleted
                    }
                }
            }
        }
    }

    fn held(&self, held: &Held, bug: Bug) -> Option<usize> {
        let index = self.messages.iter().position(|it| it.id == held.message)?;
        let message = &self.messages[index];
        let is_current = if bug == Bug::StaleReceiptAccepted {
            message.receipts.contains(&held.receipt)
        } else {
            message.receipts.last() == Some(&held.receipt)
        };
        let is_late = bug == Bug::LateReceiptRefused
            && message.count > 0
            && message.visible <= Instant::now();
        (is_current && !is_late).then_some(index)
    }
}
