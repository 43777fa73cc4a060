//! Channels, one end of which may be a thread.

pub mod oneshot {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::sync::oneshot;
    pub use tokio::sync::oneshot::error;

    use crate::scheduled::let_others_go_on;

    #[derive(Debug)]
    pub struct Sender<T>(oneshot::Sender<T>);

    #[derive(Debug)]
    pub struct Receiver<T>(oneshot::Receiver<T>);

    pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
        let (sender, receiver) = oneshot::channel();
        (Sender(sender), Receiver(receiver))
    }

    impl<T> Sender<T> {
        pub fn send(self, value: T) -> Result<(), T> {
            let_others_go_on();
            self.0.send(value)
        }

        pub fn is_closed(&self) -> bool {
            let_others_go_on();
            self.0.is_closed()
        }
    }

    impl<T> Receiver<T> {
        pub fn close(&mut self) {
            let_others_go_on();
            self.0.close();
        }

        pub fn try_recv(&mut self) -> Result<T, error::TryRecvError> {
            let_others_go_on();
            self.0.try_recv()
        }
    }

    impl<T> Future for Receiver<T> {
        type Output = Result<T, error::RecvError>;

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
            let polled = Pin::new(&mut self.0).poll(context);
            // Not before: a task that continues within a poll is polled again without a wake-up.
            if polled.is_ready() {
                let_others_go_on();
            }
            polled
        }
    }
}

pub mod mpsc {
    use shuttle::future::block_on;
    use tokio::sync::mpsc;
    pub use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, error, unbounded_channel};

    use crate::scheduled::let_others_go_on;

    #[derive(Debug)]
    pub struct Sender<T>(mpsc::Sender<T>);

    #[derive(Debug)]
    pub struct Receiver<T>(mpsc::Receiver<T>);

    pub fn channel<T>(room: usize) -> (Sender<T>, Receiver<T>) {
        let (sender, receiver) = mpsc::channel(room);
        (Sender(sender), Receiver(receiver))
    }

    impl<T> Sender<T> {
        pub async fn send(&self, value: T) -> Result<(), error::SendError<T>> {
            let_others_go_on();
            self.0.send(value).await
        }
    }

    impl<T> Receiver<T> {
        pub fn blocking_recv(&mut self) -> Option<T> {
            let_others_go_on();
            block_on(self.0.recv())
        }

        pub fn try_recv(&mut self) -> Result<T, error::TryRecvError> {
            let_others_go_on();
            self.0.try_recv()
        }
    }
}
